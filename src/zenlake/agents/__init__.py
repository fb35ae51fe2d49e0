"""Programs that reason about the bus: what they may ask, and the proof that every answer has.

proof    what an answer was made of, and what is missing of it; pure
asking   questions to the bus: keys, values, the past, tables, SQL, gaps
server   the same as tools of the Model Context Protocol
"""
