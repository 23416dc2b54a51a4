package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// DescribeStreams returns what servers say of the streams of all buckets.
func (s *Store) DescribeStreams(ctx context.Context) string {
	list, missing, err := s.streams(ctx)
	text, _ := json.Marshal(map[string]any{"streams": list, "missing": missing, "error": fmt.Sprint(err)})
	return string(text)
}

// AskedSyncing reports whether the servers have been asked whether they sync.
func (s *Store) AskedSyncing() bool { return s.unsynced.Load() != nil }

// StreamGone is what a process reports of a bucket that it finds without a stream.
const StreamGone = streamGone

// Mend makes the stream of a bucket anew.
func (s *Store) Mend(ctx context.Context, name string) error {
	opened, err := s.Bucket(ctx, name)
	if err != nil {
		return err
	}
	return s.recorder.mend(ctx, opened.(*bucket), 0)
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
	if err := s.recorder.save(ctx, b, entries, 0); err != nil || stage == "delete" {
		return err
	}
	switch stage {
	case "make":
		return s.js.DeleteStream(ctx, c.Name)
	case "fill":
		return errors.Join(s.js.DeleteStream(ctx, c.Name), b.configure(ctx, shut(c)))
	case "found": // another process has opened it
		return errors.Join(s.js.DeleteStream(ctx, c.Name), b.configure(ctx, c))
	}
	return b.configure(ctx, c) // all but the file's removal
}
