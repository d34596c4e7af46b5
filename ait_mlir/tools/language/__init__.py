"""Texts of the IR in editors and on pages: colours, and the language server."""
