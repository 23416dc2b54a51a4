package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// startTimeout bounds the start of the embedded server, which re-reads all its
// files after a crash.
const startTimeout = 30 * time.Second

// tlsTimeout bounds the handshake of a client.
const tlsTimeout = 5 * time.Second

// maxValue is the largest value of the embedded server, in bytes.
const maxValue = 8 << 20

// The connection to a server is lost if it does not answer maxPings pings, or
// accepts no data for writeTimeout.
const (
	writeTimeout = 5 * time.Second
	pingInterval = 10 * time.Second
	maxPings     = 2
)

// serve starts the embedded server in the directory.
func (s *Store) serve(ctx context.Context) (err error) {
	dir, err := filepath.Abs(s.config.Directory)
	if err != nil {
		return fmt.Errorf("data directory %s: %w", s.config.Directory, err)
	}
	if s.lock, err = lockDirectory(dir); err != nil {
		return err
	}
	if err := room(dir); err != nil {
		return unusable(dir, err)
	}
	log := &serverLog{log: s.config.Log, disk: &s.disk, dir: dir, suspect: s.suspect}
	options := &server.Options{
		ServerName: "weft", DontListen: true, NoSigs: true, DisableJetStreamBanner: true,
		JetStream: true, StoreDir: dir, SyncAlways: true, JetStreamMaxStore: diskMost, MaxPayload: maxValue, MaxPending: 8 * maxValue,
		PingInterval: pingInterval, MaxPingsOut: maxPings,
	}
	if s.config.Listen != "" {
		if err := s.listen(dir, options); err != nil {
			return err
		}
	}
	if err := forgetIndexes(dir); err != nil {
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	if s.server, err = server.NewServer(options); err != nil {
		return fmt.Errorf("data directory %s: %w", dir, err)
	}
	s.server.SetLoggerV2(log, false, false, false)
	started := make(chan struct{})
	go func() {
		defer close(started)
		s.server.Start()
	}()
	select {
	case <-started:
	case <-ctx.Done():
		return fmt.Errorf("start the store in %s: %w", dir, ctx.Err())
	case <-time.After(startTimeout):
		return fmt.Errorf("start the store in %s: not ready after %v; is the disk very slow, or full?", dir, startTimeout)
	}
	if fatal := log.fatal.Load(); fatal != nil {
		return fmt.Errorf("start the store in %s: %s; check the files there and the space on the disk", dir, *fatal)
	}
	if !s.server.ReadyForConnections(startTimeout) || !s.server.JetStreamEnabled() {
		return fmt.Errorf("start the store in %s: not ready after %v; the log at debug says more", dir, startTimeout)
	}
	s.tended.Go(func() { s.tend(dir) })
	return nil
}

// forgetIndexes removes the server's own indexes of its files. With an index,
// the server does not look at the files, and silently counts damaged messages
// as present. Without, it reads and checks them all.
func forgetIndexes(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs", "index.db"))
	for _, file := range files {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// listen sets the options for access by other processes.
func (s *Store) listen(dir string, o *server.Options) (err error) {
	host, port, err := s.config.listen()
	if err != nil {
		return err
	}
	if s.token, err = token(dir); err != nil {
		return err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	} else if err := vacant(s.config.Listen); err != nil {
		return err
	}
	o.DontListen, o.Host, o.Port, o.Authorization = false, host, port, s.token
	if s.config.TLS != nil {
		o.TLS, o.TLSConfig, o.TLSTimeout = true, s.config.TLS.Clone(), tlsTimeout.Seconds()
	}
	return nil
}

// vacant returns an error if a TCP address is not free. The server itself would
// only log that.
func vacant(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("store: listen at %s: %w; free that address, or choose another (port 0 is any that is free)", address, err)
	}
	return l.Close()
}

// unusable returns an error that says why a directory cannot be used, and what
// helps.
func unusable(dir string, err error) error {
	remedy := fmt.Sprintf("make it writable for user %d, or choose another", os.Getuid())
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		remedy = "make room there, some megabytes at least, and start again"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		remedy = "raise the limit of open files (ulimit -n)"
	case errors.Is(err, syscall.EROFS):
		remedy = "the file system is mounted read-only; mount it writable, or choose another directory"
	}
	return fmt.Errorf("data directory %s cannot be used: %w; %s", dir, err, remedy)
}

// lockPatience is how long lockDirectory waits for the lock.
const lockPatience = 500 * time.Millisecond

// lockDirectory locks the directory for this process; it makes a missing one.
// The lock ends with the process, however that ends.
func lockDirectory(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, unusable(dir, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unusable(dir, err)
	}
	if err := Lock(f, dir); err != nil {
		f.Close()
		return nil, err
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, unusable(dir, err)
	}
	if _, err := fmt.Fprintln(f, os.Getpid()); err != nil {
		f.Close()
		return nil, unusable(dir, err)
	}
	return f, nil
}

// LockFile is the name of the file in a data directory that is locked while a process
// uses it.
const LockFile = "lock"

// Lock locks the file of a data directory, until it is closed. It returns an error that
// names the process that has it locked, if one has.
func Lock(f *os.File, dir string) (err error) {
	// A child process inherits the locks of its parent until it executes its
	// program, so a lock just released may be held for another moment.
	for end := time.Now().Add(lockPatience); ; time.Sleep(5 * time.Millisecond) {
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			break
		}
	}
	if err == nil {
		return nil
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return unusable(dir, err)
	}
	owner := "another process"
	if pid, err := io.ReadAll(io.LimitReader(f, 16)); err == nil && len(pid) > 0 {
		owner = "process " + strings.TrimSpace(string(pid))
	}
	return fmt.Errorf("data directory %s is in use by %s; stop that process, or give this one a directory of its own", dir, owner)
}

// serverLog logs the messages of the embedded server, and keeps its fatal
// error.
type serverLog struct {
	log   *slog.Logger
	disk  *disk
	dir   string
	fatal atomic.Pointer[string]

	suspect func(bucket string) // called for a bucket with unreadable parts
}

// corrupt finds the stream in the server's messages about unreadable files.
var corrupt = regexp.MustCompile(`(?i)(?:corrupt.*KV_weft-|KV_weft-([a-z0-9_-]+).*corrupt)([a-z0-9_-]*)`)

func (l *serverLog) say(kind, format string, args []any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(fmt.Sprintf(format, args...), "from", "nats", "kind", kind)
	}
}

// Noticef and the others implement server.Logger.
func (l *serverLog) Noticef(format string, args ...any) { l.say("notice", format, args) }

// Warnf logs a warning, and looks for damage in it.
func (l *serverLog) Warnf(format string, args ...any) {
	l.say("warning", format, args)
	l.hear(fmt.Sprintf(format, args...))
}

// hear looks for damage in a message of the server.
func (l *serverLog) hear(text string) {
	if m := corrupt.FindStringSubmatch(text); m != nil {
		l.suspect(strings.ReplaceAll(cmp.Or(m[1], m[2]), "-", "."))
	}
}

// Errorf logs an error, and looks for disk errors in it.
func (l *serverLog) Errorf(format string, args ...any) {
	l.say("error", format, args)
	l.hear(fmt.Sprintf(format, args...))
	if l.disk.hear(fmt.Sprintf(format, args...)) {
		l.log.Error("nothing can be kept: the data directory cannot be written to; make room, and the store goes on by itself", "directory", l.dir, "err", l.disk.failure())
	}
}

// Debugf logs for debugging.
func (l *serverLog) Debugf(format string, args ...any) { l.say("debug", format, args) }

// Tracef logs messages sent and received.
func (l *serverLog) Tracef(format string, args ...any) { l.say("trace", format, args) }

// Fatalf keeps the reason why the server cannot go on.
func (l *serverLog) Fatalf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	l.fatal.CompareAndSwap(nil, &text)
	l.say("fatal", format, args)
}
