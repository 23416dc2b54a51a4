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
	// diskLook is how often a directory that could not be written to is tried.
	diskLook = time.Second
	// diskRoom is how many octets must fit into it before the server goes on.
	diskRoom = 256 << 10
	// diskMost is how much the server may keep. It is more than any disk has:
	// the server's own bound, a share of what is free when it starts, would
	// refuse state that is there already.
	diskMost = 1 << 50
)

// disk is whether the embedded server can write. Once a write has failed, the
// server takes no more for that stream, and does not answer, until it has read
// its files anew.
type disk struct {
	trouble atomic.Pointer[string] // the first error since it could; nil if it can
	ended   atomic.Int64           // when it could again, in nanoseconds since 1970
}

// diskAfter is for how long what the server answers may still come of a disk
// that it could not write to.
const diskAfter = 10 * time.Second

// hear looks through an error of the embedded server. It returns true if the
// disk has failed and had not before.
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

// failure returns what is wrong with the disk, "" if nothing is.
func (d *disk) failure() string {
	if text := d.trouble.Load(); text != nil {
		return *text
	}
	return ""
}

// troubled reports whether the disk cannot be written to, or could not a moment
// ago.
func (d *disk) troubled() bool {
	return d.failure() != "" || time.Now().UnixNano()-d.ended.Load() < int64(diskAfter)
}

// tend brings the embedded server back once its directory can be written to
// again. It ends when the store is closed.
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

// room says whether there is some in the directory.
func room(dir string) error {
	name := filepath.Join(dir, "room")
	defer os.Remove(name)
	return os.WriteFile(name, make([]byte, diskRoom), 0o600)
}

// readAnew has the embedded server end its JetStream and start it with what
// the files hold, as after a crash.
func (s *Store) readAnew(dir string) error {
	if err := s.server.ShutdownJetStream(); err != nil {
		return fmt.Errorf("end JetStream in %s: %w", dir, err)
	}
	if err := forgetIndexes(dir); err != nil {
		return err
	}
	return s.server.EnableJetStream(&server.JetStreamConfig{StoreDir: dir, MaxStore: diskMost})
}
