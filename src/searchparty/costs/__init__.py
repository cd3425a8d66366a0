"""What work costs: tokens by class, searches and turns, and money by a dated file of prices."""
