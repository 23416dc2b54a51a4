package ids

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/cputime"
)

// alerts is the file that alerts are appended to, a line and a write each.
type alerts struct {
	fd    int
	name  string
	line  []byte
	count uint64
	wall  time.Duration // of all writes
	cpu   time.Duration
}

// openAlerts opens the file; with sync each write is on the disk when it is done
// (O_DSYNC). No name: alerts are counted alone.
func openAlerts(name string, sync bool) (*alerts, error) {
	a := &alerts{fd: -1, name: name}
	if name == "" {
		return a, nil
	}
	mode := unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND | unix.O_CLOEXEC
	if sync {
		mode |= unix.O_DSYNC
	}
	fd, err := unix.Open(name, mode, 0o644)
	if err != nil {
		return nil, fmt.Errorf("alerts: %s: %w", name, err)
	}
	a.fd = fd
	return a, nil
}

func (a *alerts) close() {
	if a.fd >= 0 {
		unix.Close(a.fd)
	}
}

// write appends a line: the time, the rule, what the frame is.
func (a *alerts) write(r *Rule, d *decoded) error {
	a.count++
	if a.fd < 0 {
		return nil
	}
	b := time.Now().UTC().AppendFormat(a.line[:0], time.RFC3339Nano)
	b = append(append(append(append(b, ' '), r.Kind...), ' '), r.Name...)
	if d.ip {
		b = d.from.AppendTo(append(b, ' '))
		if d.hasPorts {
			b = strconv.AppendUint(append(b, ' '), uint64(d.sport), 10)
		}
		b = d.to.AppendTo(append(b, " > "...))
		if d.hasPorts {
			b = strconv.AppendUint(append(b, ' '), uint64(d.dport), 10)
		}
	}
	b = strconv.AppendInt(append(b, ' '), int64(len(d.frame)), 10)
	a.line = append(b, " bytes\n"...)
	began, cpu := monotonic(), cputime.Thread()
	for {
		_, err := unix.Write(a.fd, a.line)
		if err == unix.EINTR {
			continue
		}
		a.wall += monotonic() - began
		a.cpu += cputime.Thread() - cpu
		if err != nil {
			return fmt.Errorf("alerts: write %s: %w", a.name, err)
		}
		return nil
	}
}
