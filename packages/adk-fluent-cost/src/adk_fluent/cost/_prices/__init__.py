"""What tokens cost: price books, and the names of models in them."""
