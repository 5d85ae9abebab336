CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer
        );
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL
        );
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL
        );
INSERT INTO session VALUES ('ses_e1b9574d3ffeerXTU78Xgv3wfq', 'e3ad23cdcf29d1b9fa491621620a9cacd9baf032', NULL, NULL, 'nimble-rocket', '/home/ada/shop', '', '{"title": "Rehearsal"}', '1.18.18', NULL, 0, 0, 0, NULL, NULL, 0.047226000000000004, 15427, 63, 0, 0, 0, NULL, '[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]', 'build', '{"id":"m","providerID":"leg","variant":"default"}', 1794833550124, 1794833559232, NULL, NULL);
INSERT INTO message VALUES ('msg_1e46a8cdd0013WEnCXEKFLBC4t', 'ses_e1b9574d3ffeerXTU78Xgv3wfq', 1794833550557, 1794833558789, '{"role":"user","time":{"created":1794833550557},"agent":"build","model":{"providerID":"leg","modelID":"m"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES ('msg_1e46a99550013F5NeFWTe41eOl', 'ses_e1b9574d3ffeerXTU78Xgv3wfq', 1794833553749, 1794833558320, '{"parentID":"msg_1e46a8cdd0013WEnCXEKFLBC4t","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ada/shop","root":"/home/ada/shop"},"cost":0.023718,"tokens":{"total":7722,"input":7676,"output":46,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"m","providerID":"leg","time":{"created":1794833553749,"completed":1794833558316},"finish":"tool-calls"}');
INSERT INTO message VALUES ('msg_1e46aab3e001ZjTqoUyjCeHBOs', 'ses_e1b9574d3ffeerXTU78Xgv3wfq', 1794833558334, 1794833559214, '{"parentID":"msg_1e46a8cdd0013WEnCXEKFLBC4t","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/ada/shop","root":"/home/ada/shop"},"cost":0.023508,"tokens":{"total":7768,"input":7751,"output":17,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"m","providerID":"leg","time":{"created":1794833558334,"completed":1794833559212},"finish":"stop"}');
INSERT INTO part VALUES ('prt_1e46a8cef001MQrQ308J8DCRDg', 'msg_1e46a8cdd0013WEnCXEKFLBC4t', 'ses_e1b9574d3ffeerXTU78Xgv3wfq', 1794833553657, 1794833553665, '{"type":"text","text":"\"rehearsal: oc. Please look at the file\""}');
INSERT INTO part VALUES ('prt_1e46aa5ec001Uogi6hnMN4X0uX', 'msg_1e46a99550013F5NeFWTe41eOl', 'ses_e1b9574d3ffeerXTU78Xgv3wfq', 1794833556972, 1794833556976, '{"snapshot":"2e81171448eb9f2ee3821e3d447aa6b2fe3ddba1","type":"step-start"}');
INSERT INTO part VALUES ('prt_1e46aa5f3001CnzAvpXuW2OOn6', 'msg_1e46a99550013F5NeFWTe41eOl', 'ses_e1b9574d3ffeerXTU78Xgv3wfq', 1794833556979, 1794833557048, '{"type":"text","text":"I look at the file.","time":{"start":1794833556979,"end":1794833557045}}');
INSERT INTO part VALUES ('prt_1e46aa5fb001UgpxSr0B2LawAg', 'msg_1e46a99550013F5NeFWTe41eOl', 'ses_e1b9574d3ffeerXTU78Xgv3wfq', 1794833556988, 1794833557533, '{"type":"tool","tool":"bash","callID":"call_f694099a7fae49c789bc5a7a","state":{"status":"completed","input":{"command":"cat a.txt","description":"read"},"output":"hello\n","metadata":{"output":"hello\n","exit":0,"truncated":false},"title":"cat a.txt","time":{"start":1794833557353,"end":1794833557435}}}');
INSERT INTO part VALUES ('prt_1e46aa9e4001nI6aobcXRteSKj', 'msg_1e46a99550013F5NeFWTe41eOl', 'ses_e1b9574d3ffeerXTU78Xgv3wfq', 1794833557988, 1794833557999, '{"reason":"tool-calls","snapshot":"2e81171448eb9f2ee3821e3d447aa6b2fe3ddba1","type":"step-finish","tokens":{"total":7722,"input":7676,"output":46,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0.023718}');
INSERT INTO part VALUES ('prt_1e46aace8001OV4pB4TLxC98ua', 'msg_1e46aab3e001ZjTqoUyjCeHBOs', 'ses_e1b9574d3ffeerXTU78Xgv3wfq', 1794833558760, 1794833558762, '{"snapshot":"2e81171448eb9f2ee3821e3d447aa6b2fe3ddba1","type":"step-start"}');
INSERT INTO part VALUES ('prt_1e46aaced001OVCUtbVBk9aql4', 'msg_1e46aab3e001ZjTqoUyjCeHBOs', 'ses_e1b9574d3ffeerXTU78Xgv3wfq', 1794833558766, 1794833558774, '{"type":"text","text":"The file says hello. The zebra is done.","time":{"start":1794833558765,"end":1794833558772}}');
INSERT INTO part VALUES ('prt_1e46aadea001WUwHkUn7ppAwbs', 'msg_1e46aab3e001ZjTqoUyjCeHBOs', 'ses_e1b9574d3ffeerXTU78Xgv3wfq', 1794833559018, 1794833559021, '{"reason":"stop","snapshot":"2e81171448eb9f2ee3821e3d447aa6b2fe3ddba1","type":"step-finish","tokens":{"total":7768,"input":7751,"output":17,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0.023508}');
