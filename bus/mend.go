package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/weft-sdn/weft/internal/wholefile"
)

// rescue is the file with what could be read of a damaged bucket, while its stream is
// made anew.
type rescue struct {
	Last    uint64        `json:"last"` // highest revision that the bucket has assigned
	Entries []rescueEntry `json:"entries"`
}

type rescueEntry struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// mender makes the streams of damaged buckets anew. It keeps what it has saved in dir.
type mender struct {
	store *Store
	dir   string
}

func (m *mender) savedPath(bucket string) string { return filepath.Join(m.dir, bucket+".saved") }

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

// reopen is the reverse of shut.
func reopen(c jetstream.StreamConfig) jetstream.StreamConfig {
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
func (m *mender) mend(ctx context.Context, b *bucket, last uint64) error {
	c := (*b.stream.Load()).CachedInfo().Config
	err := b.configure(ctx, shut(c))
	var entries []entry
	if err == nil {
		entries, _, err = b.snapshot(ctx)
	}
	if err == nil {
		err = m.save(ctx, b, entries, last)
	}
	if err != nil {
		return errors.Join(err, b.configure(ctx, reopen(c)))
	}
	return m.remake(ctx, c)
}

// save writes what could be read of a bucket, and the highest revision it has assigned,
// into a file.
func (m *mender) save(ctx context.Context, b *bucket, entries []entry, last uint64) error {
	info, err := (*b.stream.Load()).Info(ctx)
	if err != nil {
		return err
	}
	s := rescue{Last: max(last, info.State.LastSeq)}
	for _, e := range entries {
		s.Entries = append(s.Entries, rescueEntry{e.key, e.value})
	}
	text, err := json.Marshal(s)
	if err == nil {
		err = wholefile.Write(m.savedPath(b.name), text, 0o600)
	}
	if err == nil {
		err = syncDirectory(m.dir)
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

// remake deletes the stream of a bucket, and makes it with what the file has.
func (m *mender) remake(ctx context.Context, c jetstream.StreamConfig) error {
	name := c.Description
	s, err := m.read(ctx, name)
	if err == nil && s == nil {
		err = fmt.Errorf("%s is not there any more", m.savedPath(name))
	}
	if err != nil {
		return err
	}
	state, err := m.store.state(ctx)
	if err == nil {
		_, err = state.Put(ctx, mendPrefix+name, []byte("now"))
	}
	if err != nil {
		return err
	}
	c.FirstSeq = s.Last + 1
	err = m.store.retry(ctx, "mend bucket "+name, func(ctx context.Context) error {
		if err := m.store.js.DeleteStream(ctx, c.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		_, err := createStream(ctx, m.store.js, shut(c))
		return err
	})
	if err := errors.Join(err, state.Delete(ctx, mendPrefix+name)); err != nil {
		return err
	}
	opened, err := m.store.Bucket(ctx, name)
	if err != nil {
		return err
	}
	b := opened.(*bucket)
	for _, e := range s.Entries {
		message := b.message(e.Key, e.Value)
		message.Subject = shutSubjects(name) + e.Key
		err := b.retry(ctx, "put", e.Key, func(ctx context.Context) error {
			_, err := b.write(ctx, message)
			return err
		})
		if err != nil {
			return err
		}
	}
	if err := b.configure(ctx, reopen(c)); err != nil {
		return err
	}
	return os.Remove(m.savedPath(name))
}

// read returns what has been saved of a bucket, or nil if there is no file. A file that cannot
// be understood is set aside, and the store starts all the same: what the bucket then lacks is
// damage.
func (m *mender) read(ctx context.Context, name string) (*rescue, error) {
	path := m.savedPath(name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := &rescue{}
	if err := json.Unmarshal(text, s); err != nil {
		m.store.config.Log.Error("what was saved of a bucket cannot be read, and is set aside", "bucket", name, "file", path+".unreadable", "error", err)
		state, stateErr := m.store.state(ctx)
		if stateErr == nil {
			stateErr = state.Delete(ctx, mendPrefix+name)
		}
		return nil, errors.Join(stateErr, os.Rename(path, path+".unreadable"))
	}
	return s, nil
}

// resume ends what a process that was killed has begun to mend.
func (m *mender) resume(ctx context.Context, name string) error {
	if m.store.server == nil {
		return nil // mends nothing
	}
	s, err := m.read(ctx, name)
	if err != nil {
		return err
	}
	c, open, reached := streamConfig(name, 1), true, uint64(0) // of a stream that is not there
	asked := m.store.retry(ctx, "open bucket "+name, func(ctx context.Context) error {
		stream, err := m.store.js.Stream(ctx, "KV_"+legal(name))
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil
		}
		if err == nil {
			info := stream.CachedInfo()
			c, open, reached = info.Config, !isShut(info.Config), info.State.LastSeq
		}
		return err
	})
	switch {
	case asked != nil:
		return asked
	case s != nil && (!open || reached < s.Last):
		return m.remake(ctx, c)
	case s != nil:
		return os.Remove(m.savedPath(name)) // all is in the stream
	case !open:
		_, err := m.store.js.UpdateStream(ctx, reopen(c))
		return err
	}
	return nil
}
