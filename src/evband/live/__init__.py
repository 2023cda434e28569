"""Live: feeds of cars in; bands, energy, range and arrival out, for one car at home or thousands (`evband serve`)."""
