-- Whether a leader was asked, in the conversation that it has, to write down what that holds.

ALTER TABLE agents ADD COLUMN called INTEGER NOT NULL DEFAULT 0;
