"""Applications that stand between the driver and a server: started and proved as engines are."""
