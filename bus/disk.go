package bus

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// diskLook is how often tend tries a directory that could not be written
	// to.
	diskLook = time.Second
	// diskRoom is how many bytes must fit into it before the server goes on.
	diskRoom = 256 << 10
	// diskMost is the server's storage limit. It is larger than any disk: the
	// server's default, a share of the free space at its start, would refuse
	// existing state.
	diskMost = 1 << 50
)

// disk says whether the embedded server can write. After a failed write, the
// server accepts no more writes for that stream, and does not answer, until it
// has re-read its files.
type disk struct {
	trouble atomic.Pointer[string] // the first error since the last success; nil if writing works
	ended   atomic.Int64           // when writing worked again, in nanoseconds since 1970
}

// diskAfter is how long the server's errors may still result from a disk that
// it could not write to.
const diskAfter = 10 * time.Second

// hear checks an error of the embedded server. It returns true if the disk has
// newly failed.
func (d *disk) hear(text string) bool {
	small := strings.ToLower(text)
	for _, sign := range []string{"critical write error", "no space left", "will be disabled", "disabling jetstream"} {
		if strings.Contains(small, sign) {
			if i := strings.LastIndex(text, "write error: "); i >= 0 {
				text = text[i+len("write error: "):]
			}
			return d.trouble.CompareAndSwap(nil, &text)
		}
	}
	return false
}

// failure returns what is wrong with the disk; "" if nothing is.
func (d *disk) failure() string {
	if text := d.trouble.Load(); text != nil {
		return *text
	}
	return ""
}

// troubled reports whether the disk cannot be written to, or could not be a
// moment ago.
func (d *disk) troubled() bool {
	return d.failure() != "" || time.Now().UnixNano()-d.ended.Load() < int64(diskAfter)
}

// tend restarts the embedded server's storage once its directory can be written
// to again. It ends when the store is closed.
func (s *Store) tend(dir string) {
	tick := time.NewTicker(diskLook)
	defer tick.Stop()
	for {
		select {
		case <-s.link.closed:
			return
		case <-tick.C:
		}
		if s.disk.failure() == "" || room(dir) != nil {
			continue
		}
		if err := s.readAnew(dir); err != nil {
			s.config.Log.Error("the store does not start again; restart the controller", "directory", dir, "err", err)
			continue
		}
		s.disk.ended.Store(time.Now().UnixNano())
		s.disk.trouble.Store(nil)
		select {
		case s.reread <- struct{}{}:
		default:
		}
		s.config.Log.Info("the store can write again", "directory", dir)
	}
}

// room returns an error if the directory has no room.
func room(dir string) error {
	name := filepath.Join(dir, "room")
	defer os.Remove(name)
	return os.WriteFile(name, make([]byte, diskRoom), 0o600)
}

// readAnew restarts the embedded server's JetStream, which re-reads its files,
// as after a crash.
func (s *Store) readAnew(dir string) error {
	if err := s.server.ShutdownJetStream(); err != nil {
		return fmt.Errorf("end JetStream in %s: %w", dir, err)
	}
	if err := forgetIndexes(dir); err != nil {
		return err
	}
	return s.server.EnableJetStream(&server.JetStreamConfig{StoreDir: dir, MaxStore: diskMost})
}
