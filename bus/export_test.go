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
func (s *Store) AskedSyncing() bool { return s.unsynced.Load() != nil }

// StreamGone is what a process reports of a bucket that it finds without a stream.
const StreamGone = streamGone
