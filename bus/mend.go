package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weft-sdn/weft/internal/wholefile"
)

// saved is what could be read of a damaged bucket, in a file while its stream is made
// anew.
type saved struct {
	Last    uint64       `json:"last"` // highest revision that the bucket has assigned
	Entries []savedEntry `json:"entries"`
}

type savedEntry struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

func (r *recorder) savedPath(bucket string) string { return r.path(bucket) + ".saved" }

// shutSubjects returns what the subjects of a bucket's keys begin with while its stream
// is made anew: nobody else writes to them.
func shutSubjects(name string) string { return "$WEFT.mend." + legal(name) + "." }

// shut returns the configuration of a stream to which others cannot write. Their writes
// have no responders, and are tried again.
func shut(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Subjects = []string{shutSubjects(c.Description) + ">"}
	c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: c.Subjects[0], Destination: subjects(c.Description) + ">"}
	return c
}

// reopened is the reverse of shut.
func reopened(c jetstream.StreamConfig) jetstream.StreamConfig {
	c.Subjects, c.SubjectTransform = []string{subjects(c.Description) + ">"}, nil
	return c
}

func isShut(c jetstream.StreamConfig) bool {
	return slices.Contains(c.Subjects, shutSubjects(c.Description)+">")
}

// mend makes the stream of a damaged bucket anew, with all entries that can be read,
// because the server stops writing to unreadable files, and after a restart does not
// know what follows the damage. Revisions continue after the last one. What others write
// meanwhile is confirmed once it is in the new stream. If the process is killed, its next
// start goes on.
func (r *recorder) mend(ctx context.Context, b *bucket, last uint64) error {
	c := (*b.stream.Load()).CachedInfo().Config
	err := b.configure(ctx, shut(c))
	var entries []entry
	if err == nil {
		entries, _, err = b.snapshot(ctx)
	}
	if err == nil {
		err = r.save(ctx, b, entries, last)
	}
	if err != nil {
		return errors.Join(err, b.configure(ctx, reopened(c)))
	}
	return r.remake(ctx, c)
}

// save writes what could be read of a bucket, and the highest revision it has assigned,
// into a file.
func (r *recorder) save(ctx context.Context, b *bucket, entries []entry, last uint64) error {
	info, err := (*b.stream.Load()).Info(ctx)
	if err != nil {
		return err
	}
	s := saved{Last: max(last, info.State.LastSeq)}
	for _, e := range entries {
		s.Entries = append(s.Entries, savedEntry{e.key, e.value})
	}
	text, err := json.Marshal(s)
	if err == nil {
		err = wholefile.Write(r.savedPath(b.name), text, 0o600)
	}
	if err == nil {
		err = syncDirectory(r.dir)
	}
	return err
}

// configure changes the stream of the bucket.
func (b *bucket) configure(ctx context.Context, c jetstream.StreamConfig) error {
	return b.retry(ctx, "mend", "all keys", func(ctx context.Context) error {
		stream, err := b.store.js.UpdateStream(ctx, c)
		if err == nil {
			b.stream.Store(&stream)
		}
		return err
	})
}

// remake makes the stream of a bucket anew with what has been saved of it.
func (r *recorder) remake(ctx context.Context, c jetstream.StreamConfig) error {
	name := c.Description
	text, err := os.ReadFile(r.savedPath(name))
	if err != nil {
		return err
	}
	var s saved
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("%s: %w", r.savedPath(name), err)
	}
	state, err := r.store.state(ctx)
	if err == nil {
		_, err = state.Put(ctx, mendPrefix+name, []byte("now"))
	}
	if err != nil {
		return err
	}
	c.FirstSeq = s.Last + 1
	err = r.store.retry(ctx, "mend bucket "+name, func(ctx context.Context) error {
		if err := r.store.js.DeleteStream(ctx, c.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		_, err := r.store.create(ctx, shut(c))
		return err
	})
	if err := errors.Join(err, state.Delete(ctx, mendPrefix+name)); err != nil {
		return err
	}
	opened, err := r.store.Bucket(ctx, name)
	if err != nil {
		return err
	}
	b := opened.(*bucket)
	for _, e := range s.Entries {
		m := b.message(e.Key, e.Value)
		m.Subject = shutSubjects(name) + e.Key
		err := b.retry(ctx, "put", e.Key, func(ctx context.Context) error {
			_, err := b.write(ctx, m)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := b.configure(ctx, reopened(c)); err != nil {
		return err
	}
	return os.Remove(r.savedPath(name))
}

// mended returns an error if the stream of a bucket is not there because it is being made
// anew.
func (s *Store) mended(ctx context.Context, name string) error {
	if strings.HasPrefix(name, "bus.") {
		return nil
	}
	state, err := s.js.Stream(ctx, "KV_"+legal(stateBucket))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	m, err := state.GetLastMsgForSubject(ctx, subjects(stateBucket)+mendPrefix+name)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil
	case err != nil:
		return err
	case m.Header.Get(operation) == "" && m.Header.Get(jetstream.MarkerReasonHeader) == "":
		return errTaken
	}
	return nil
}

// resume ends what a process that was killed has begun to mend.
func (r *recorder) resume(ctx context.Context, name string) error {
	if r.store.server == nil {
		return nil // mends nothing
	}
	text, err := os.ReadFile(r.savedPath(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c, open, reached := streamConfig(name, 1), true, uint64(0) // of a stream that is not there
	asked := r.store.retry(ctx, "open bucket "+name, func(ctx context.Context) error {
		stream, err := r.store.js.Stream(ctx, "KV_"+legal(name))
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		if err == nil {
			info := stream.CachedInfo()
			c, open, reached = info.Config, !isShut(info.Config), info.State.LastSeq
		}
		return err
	})
	var s saved
	switch {
	case asked != nil:
		return asked
	case err == nil && json.Unmarshal(text, &s) != nil:
		return fmt.Errorf("%s cannot be read", r.savedPath(name))
	case err == nil && (!open || reached < s.Last):
		return r.remake(ctx, c)
	case err == nil:
		return os.Remove(r.savedPath(name)) // all is in the stream
	case !open:
		_, err := r.store.js.UpdateStream(ctx, reopened(c))
		return err
	}
	return nil
}
