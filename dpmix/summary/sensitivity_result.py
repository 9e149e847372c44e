"""The result of power scaling: how sensitive each reported quantity is to its prior."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpmix.results.nodes import Attr, Each, Note, ResultSection, Table, TableColumn
from dpmix.summary.row_labels import shown_name

__all__ = ["SENSITIVE", "Index", "Sensitivity"]

SENSITIVE = 0.05
"""Index from which on a quantity is called sensitive."""
_MOST_ROWS = 64


@dataclass(frozen=True)
class Index:
    """Sensitivities of one quantity; None where there is none.

    Parameters
    ----------
    prior, likelihood : float or None
        To power scaling of each.
    noise : float or None
        What the prior's may be of a quantity that has nothing to do with it.
    """

    prior: float | None
    likelihood: float | None
    noise: float | None

    @property
    def sensitive(self) -> bool:
        """Whether the prior matters."""
        return self.prior is not None and self.prior >= max(SENSITIVE, self.noise or 0.0)

    @property
    def diagnosis(self) -> str:
        """What both together say, in the words of `arviz_stats.psense_summary`; empty for nothing."""
        if not self.sensitive:
            return ""
        if self.likelihood is None:
            return "informative prior"
        if self.likelihood >= SENSITIVE:
            return "potential prior-data conflict"
        return "strong prior or weak likelihood"


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivities of all quantities.

    Parameters
    ----------
    indices : mapping of str to Index
        By quantity; empty where there are none.
    k_prior, k_likelihood : float or None
        The larger Pareto k of both powers.
    no_prior, no_likelihood : str
        Why there is none of these; empty where there is one.
    of_clusters : bool
        Whether the prior is that of a mixture's clusters.
    labels : mapping of str to str
        What quantities are of, by name, where that is shown in the place of indices.
    """

    indices: Mapping[str, Index] = field(default_factory=dict)
    k_prior: float | None = None
    k_likelihood: float | None = None
    no_prior: str = ""
    no_likelihood: str = ""
    of_clusters: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_likelihood(self) -> bool:
        """Whether the likelihood's row is there."""
        return any(index.likelihood is not None for index in self.indices.values())

    def section(self) -> ResultSection:
        """Return what is reported of them."""
        reasons = {
            key: why for key, why in (("prior", self.no_prior), ("likelihood", self.no_likelihood)) if why
        }
        ks = {"prior": self.k_prior, "likelihood": self.k_likelihood}
        rest = {"pareto_k": Each(ks), "threshold": Attr(SENSITIVE), "reason": Each(reasons or None)}
        title = "Sensitivity to the prior"
        if not self.indices:
            page = [f"Not known: {self.no_prior}."] if self.no_prior else []
            return ResultSection("prior_sensitivity", Each({"parameters": None, **rest}), title, page=page)
        table = self._table()
        order = sorted(range(len(table.rows)), key=lambda place: not table.columns[0].bad[place])
        return ResultSection(
            "prior_sensitivity",
            {"parameters": table, **rest, **{f"pareto_k_{name}": Each(hdf5=k) for name, k in ks.items()}},
            title,
            page=[table.take(order[:_MOST_ROWS]), Note(self._note())],
        )

    def _table(self) -> Table:
        found = list(self.indices.values())
        shown = "json hdf5 page" if self.has_likelihood else "json hdf5"
        return Table(
            "parameter",
            list(self.indices),
            [
                TableColumn(
                    "prior", [i.prior for i in found], "prior", ".3f", bad=[i.sensitive for i in found]
                ),
                TableColumn("likelihood", [i.likelihood for i in found], "likelihood", ".3f", where=shown),
                TableColumn("noise", [i.noise for i in found], "noise", ".3f"),
                TableColumn(
                    "diagnosis", [i.diagnosis or None for i in found], "what it says", str, where="json page"
                ),
            ],
            title="scalar",
            shown=[shown_name(name, self.labels) for name in self.indices],
        )

    def _note(self) -> str:
        text = (
            "How far the posterior of each scalar moves when the prior, or the likelihood, is raised to a "
            f"power: distance of distribution functions per doubling of the power. From {SENSITIVE:g} on, "
            "and where it is above **noise** (what draws of this number show for a scalar that has nothing "
            "to do with the prior), the prior matters; where the likelihood's is below "
            f"{SENSITIVE:g}, the release says little."
        )
        if self.of_clusters:
            text += " The prior is that of the occupied clusters' parameters and of the concentration."
        both = {"prior": self.k_prior, "likelihood": self.k_likelihood}
        ks = ", ".join(f"{name} {k:.2f}" for name, k in both.items() if k is not None)
        if ks:
            text += f" Pareto k of the importance weights: {ks}; above 0.7 nothing is reported."
        if not self.has_likelihood and self.no_likelihood:
            text += f" No likelihood's: {self.no_likelihood}."
        left = len(self.indices) - _MOST_ROWS
        return text + (f" {left:,} more are in the JSON." if left > 0 else "")
