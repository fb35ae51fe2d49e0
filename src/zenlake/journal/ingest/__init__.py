"""From frames on the wire to the columns of a journal, with no object per sample."""
