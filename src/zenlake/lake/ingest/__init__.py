"""From the journal into the tables: plan, tasks, commit, and tables that follow from `samples`."""
