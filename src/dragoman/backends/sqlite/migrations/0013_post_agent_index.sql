-- What agents are found by, facets and words together (facets.py): a row's number is how far the rating is from the
-- best, in thousandths, times 2^40, and the agent's number. So the first rows that match are the best ones.
CREATE VIRTUAL TABLE agent_index USING fts5 (found_by, words, tokenize = 'porter unicode61', columnsize = 0);

INSERT INTO agent_index (rowid, found_by, words)
SELECT (min(max(CAST((5.0 - agent.score) * 1000 + 0.5 AS INTEGER), 0), 8191) << 40) | agent.number AS place,
  agent_text.place || ' ' || coalesce(found.tokens, ''), agent_text.words
FROM agent_text CROSS JOIN agent ON agent.number = agent_text.rowid
LEFT JOIN (
  SELECT agent, group_concat(DISTINCT kind || 'x' || lower(hex(value)) || 'x0') AS tokens
  FROM agent_facet WHERE kind <> 'all' GROUP BY agent
) AS found ON found.agent = agent.number
ORDER BY 1;

DROP TABLE agent_text;
