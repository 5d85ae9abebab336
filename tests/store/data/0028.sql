-- An agent that works with another program than the default one.

UPDATE agents SET driver = 'qwen' WHERE number = 1;
