"""Models of other frameworks as `ait` modules, one package a framework."""
