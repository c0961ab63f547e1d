"""Reading tables from files and defining the prediction task."""
