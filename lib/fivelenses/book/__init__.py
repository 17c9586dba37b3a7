"""The book: cards of claims, pages of runs, findings, the ledger, and the build."""
