"""What a release will tell, before there is one: by information about a public population, no record read.

Everything here follows from laws (the public half of mechanisms) and from distributions that are stated;
nothing of the confidential side is imported (methods, section 13, "What a design will cost").
"""
