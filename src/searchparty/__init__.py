"""searchparty: train, evaluate and serve teams of search agents that answer questions over a corpus."""

__version__ = "0.1.0"
