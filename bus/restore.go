package bus

import (
	"context"
	"errors"
	"fmt"
)

// unfinished is the damage of buckets during a restore.
const unfinished = "a restore was begun and not finished; run weft store restore again"

// Restore gives buckets exactly the given keys, in the process that keeps the
// manifests. Until all of them have them, each counts as damaged, even if the
// process is killed meanwhile.
func (s *Store) Restore(ctx context.Context, contents map[string]map[string][]byte) error {
	if s.recorder == nil {
		return errors.New("restore: this process does not keep the manifests of the store")
	}
	for name, entries := range contents {
		for key := range entries {
			if err := usable(ctx, key); err != nil {
				return fmt.Errorf("restore bucket %s: %w", name, err)
			}
		}
	}
	state, err := s.state(ctx)
	if err != nil {
		return err
	}
	for name := range contents {
		if _, err := s.Bucket(ctx, name); err != nil {
			return err
		}
		if err := s.recorder.begin(ctx, state, name); err != nil {
			return err
		}
	}
	for name, entries := range contents {
		if err := s.fill(ctx, name, entries); err != nil {
			return err
		}
	}
	for name := range contents {
		if err := s.recorder.accept(ctx, state, name); err != nil {
			return err
		}
	}
	return nil
}

// begin marks a bucket as damaged, in its manifest, before it is restored.
func (r *recorder) begin(ctx context.Context, state *bucket, name string) error {
	r.checking.Lock()
	defer r.checking.Unlock()
	r.mu.Lock()
	m := r.manifests[name]
	delete(r.manifests, name)
	r.known[name] = true
	r.mu.Unlock()
	if m == nil {
		rec, err := readManifest(r.path(name), name)
		if err != nil {
			return err
		}
		if rec.missing || rec.fault != "" {
			m, err = writeManifest(r.path(name), name, nil, 0)
		} else {
			m, err = openManifest(r.path(name), rec)
		}
		if err != nil {
			return err
		}
	}
	if err := errors.Join(m.report(unfinished), m.close()); err != nil {
		return err
	}
	d := r.damage(name)
	d.Reason = unfinished
	return r.declare(ctx, state, d)
}

// fill gives a bucket exactly the given keys, even if it is damaged.
func (s *Store) fill(ctx context.Context, name string, entries map[string][]byte) error {
	opened, err := s.Bucket(ctx, name)
	if err != nil {
		return err
	}
	b := opened.(*bucket)
	var others []string
	err = b.All(ctx, func(key string, _ []byte, _ uint64) error {
		if _, wanted := entries[key]; !wanted {
			others = append(others, key)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for key, value := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := b.put(ctx, key, value); err != nil {
			return err
		}
	}
	for _, key := range others {
		if err := b.purge(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
