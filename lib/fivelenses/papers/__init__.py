"""What each paper measures, draws and claims, one folder per paper; the project's own chapters stand beside them."""
