"""The parts that screens are put together from. They draw rows of the views and report keys and clicks."""
