package bus

import (
	"context"
	"encoding/json"
	"fmt"
)

// DescribeStreams returns what servers say of the streams of all buckets.
func (s *Store) DescribeStreams(ctx context.Context) string {
	list, missing, err := s.streams(ctx)
	text, _ := json.Marshal(map[string]any{"streams": list, "missing": missing, "error": fmt.Sprint(err)})
	return string(text)
}

// AskedSyncing reports whether the servers have been asked whether they sync.
func (s *Store) AskedSyncing() bool { return s.syncing.lazy.Load() != nil }

// StreamGone is what a process reports of a bucket that it finds without a stream.
const StreamGone = streamGone

// Reopen looks a bucket's stream up, and makes a missing one, as a process does that starts.
func (s *Store) Reopen(ctx context.Context, name string) {
	_, _ = s.stream(ctx, name, 1)
}

// Mend makes the stream of a bucket anew.
func (s *Store) Mend(ctx context.Context, name string) error {
	opened, err := s.Bucket(ctx, name)
	if err != nil {
		return err
	}
	return s.recorder.mender.mend(ctx, opened.(*bucket), 0)
}

// MendUntil leaves a bucket as a process does that is killed while it mends it, before the
// given stage.
func (s *Store) MendUntil(ctx context.Context, name, stage string) error {
	opened, err := s.Bucket(ctx, name)
	if err != nil {
		return err
	}
	b := opened.(*bucket)
	entries, _, err := b.snapshot(ctx)
	if err != nil {
		return err
	}
	c := (*b.stream.Load()).CachedInfo().Config
	if err := b.configure(ctx, shut(c)); err != nil || stage == "save" {
		return err
	}
	if err := s.recorder.mender.save(ctx, b, entries, 0); err != nil || stage == "delete" {
		return err
	}
	if stage == "remove" { // all else is done
		return b.configure(ctx, c)
	}
	if err := s.js.DeleteStream(ctx, c.Name); err != nil || stage == "make" {
		return err
	}
	if stage == "fill" {
		c = shut(c)
	} // else another process has opened it
	_, err = createStream(ctx, s.js, c)
	return err
}
