-- A second session of the repository, on a branch of its own, that has ended.

INSERT INTO projects (id, version, name, root, common_dir, branch, worktrees, paused, config_text, config_hash,
    config_origin, target, baseline_commit, baseline_verdict, person_tip, person_absorbed, person_refused, created_at,
    removed_at, session, chosen, base_commit)
VALUES (22, 1, 'shop', '/home/ada/shop', '/home/ada/shop/.git', 'feature/till', '/home/ada/shop-legion/@feature-till', 0,
    '[checks.test]', 'hash-1', 'target', 'cccccccccccccccccccccccccccccccccccccccc', NULL, NULL, NULL, NULL, NULL,
    2200.0, 2300.0, 'feature-till', 1, 'bbbb');
