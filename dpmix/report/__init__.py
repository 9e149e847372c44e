"""Pictures of a summary, and a self-contained HTML page of them: `plots.plot_density` and `page.render`."""
