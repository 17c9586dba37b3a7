"""What each paper measures, one module per paper, or one more where it is costly; the project's own chapters, too."""
