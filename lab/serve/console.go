package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/lab/machine"
)

// scrollBack is how many octets of a terminal are remembered.
const scrollBack = 1 << 20

// console is a command at a terminal in a node, and the last of what it has written.
type console struct {
	cmd    *exec.Cmd
	on     string // the machine by ssh; empty: this one
	master *os.File
	exited chan struct{} // closed once the command has ended
	over   chan struct{} // closed once all that it has left behind has, too

	mu       sync.Mutex // guards what follows
	is       *api.LabConsole
	ring     []byte        // the octets before total, at total modulo its length
	total    int64         // written by the terminal
	news     chan struct{} // closed at the next change
	endedAt  time.Time     // zero while it goes on
	attached int
	evicted  error // why it had to end for another client
}

// sshFailed is the exit status of ssh(1) if it failed itself.
const sshFailed = 255

// consoleEnv is the environment variable by which what runs in a console is known as its.
const consoleEnv = "WEFT_LAB_CONSOLE"

// openConsole starts a command at a terminal in a node. It calls leave when nothing is left
// of the command; clients learn of the end after that.
func (s *server) openConsole(l running, is *api.LabConsole, leave func()) (*console, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	defer slave.Close()
	c := &console{is: is, on: l.Where(is.Node), master: master, exited: make(chan struct{}), over: make(chan struct{}), news: make(chan struct{})}
	if err := c.resize(is.Rows, is.Cols); err != nil {
		return nil, errors.Join(err, master.Close())
	}
	c.cmd = exec.Command(is.Command[0], is.Command[1:]...) //nolint:gosec // this is what it is for
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = slave, slave, slave
	c.cmd.Env = append(os.Environ(), "TERM=xterm-256color", s.o.mark(), consoleEnv+"="+is.Console)
	c.cmd.Env = append(c.cmd.Env, prompt(is.Node, is.Lab)...)
	c.cmd.Dir = "/"
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := l.StartAt(is.Node, c.cmd); err != nil {
		return nil, errors.Join(err, master.Close())
	}
	go c.read()
	go c.wait(leave)
	return c, nil
}

// prompt has shells say where they are: bash sets PS1 by its own files, and then runs
// PROMPT_COMMAND.
func prompt(node, lab string) []string {
	ps1 := fmt.Sprintf("%s (lab %s)# ", node, lab)
	return []string{"PS1=" + ps1, "PROMPT_COMMAND=PS1='" + ps1 + "'; unset PROMPT_COMMAND"}
}

// read takes in what the terminal says, until it is closed.
func (c *console) read() {
	b := make([]byte, 32<<10)
	for {
		n, err := c.master.Read(b)
		if n > 0 {
			c.write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

// write remembers what the terminal has said.
func (c *console) write(b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total+int64(len(b)) > int64(len(c.ring)) && len(c.ring) < scrollBack { // grow, while all of it is there
		bigger := make([]byte, min(scrollBack, max(4<<10, 2*len(c.ring), int(c.total)+len(b))))
		copy(bigger, c.ring[:min(c.total, int64(len(c.ring)))])
		c.ring = bigger
	}
	for len(b) > 0 {
		n := copy(c.ring[c.total%int64(len(c.ring)):], b)
		c.total, b = c.total+int64(n), b[n:]
	}
	c.changed()
}

// changed wakes who waits for a change; c.mu is held.
func (c *console) changed() {
	close(c.news)
	c.news = make(chan struct{})
}

// since returns what the terminal has said from a place on, at most a part of
// it, and the next place; false if the beginning is forgotten already. If there
// is nothing, it returns a channel that is closed at the next change, nil if
// the console has ended.
func (c *console) since(from int64) (b []byte, next int64, news <-chan struct{}, ok bool) {
	const part = 32 << 10
	c.mu.Lock()
	defer c.mu.Unlock()
	if from < c.total-int64(len(c.ring)) {
		return nil, 0, nil, false
	}
	for from < c.total && len(b) < part {
		at := from % int64(len(c.ring))
		n := min(int64(len(c.ring))-at, c.total-from, int64(part-len(b)))
		b, from = append(b, c.ring[at:at+n]...), from+n
	}
	if len(b) == 0 && c.endedAt.IsZero() {
		news = c.news
	}
	return b, from, news, true
}

// first returns the first place that is remembered.
func (c *console) first() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, c.total-int64(len(c.ring)))
}

// wait waits for the command's end and what it has said last. What it has left in the
// background ends with it. Then wait calls leave, and lets clients know.
func (c *console) wait(leave func()) {
	defer close(c.over)
	err := c.cmd.Wait()
	if c.on != "" && c.cmd.ProcessState.ExitCode() == sshFailed {
		err = fmt.Errorf("%s: ssh has lost it, or did not reach it", c.on)
	}
	close(c.exited)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if left := machine.EndMarked(ctx, consoleEnv, c.is.Console); left != nil {
		err = errors.Join(err, left)
	}
	c.drain()
	c.master.Close()
	leave()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.is.Ended, c.endedAt = true, time.Now()
	if c.evicted != nil {
		err = c.evicted
	}
	if err != nil {
		c.is.Error = err.Error()
	}
	c.changed()
}

// drain waits until the terminal says nothing any more, at most a second: what
// the command has left behind may hold it open.
func (c *console) drain() {
	end := time.After(time.Second)
	for {
		c.mu.Lock()
		news := c.news
		c.mu.Unlock()
		select {
		case <-news:
		case <-time.After(50 * time.Millisecond):
			return
		case <-end:
			return
		}
	}
}

// resize sets the size of the terminal.
func (c *console) resize(rows, cols uint32) error {
	const most = 1000
	if rows == 0 || cols == 0 || rows > most || cols > most {
		return fmt.Errorf("a terminal of %d lines and %d columns is not allowed; allowed: 1 to %d", rows, cols, most)
	}
	if err := pty.Setsize(c.master, &pty.Winsize{Rows: uint16(rows), Cols: uint16(cols)}); err != nil {
		return fmt.Errorf("set the size of the terminal: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.is.Rows, c.is.Cols = rows, cols
	return nil
}

// end ends the command, and what it has left behind: it is hung up, and killed if that does
// not help.
func (c *console) end() {
	defer func() { <-c.over }()
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGKILL} {
		select {
		case <-c.exited:
			return
		default:
		}
		_ = syscall.Kill(-c.cmd.Process.Pid, sig) // its process group; it may have ended meanwhile
		select {
		case <-c.exited:
			return
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// evict is end for a console that has to make room for another, and records why.
func (c *console) evict(why error) {
	c.mu.Lock()
	c.evicted = why
	c.mu.Unlock()
	c.end()
}

// snapshot returns what the console is now.
func (c *console) snapshot() *api.LabConsole {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &api.LabConsole{
		Console: c.is.Console, Lab: c.is.Lab, Node: c.is.Node, Command: c.is.Command, Caller: c.is.Caller, Opened: c.is.Opened,
		Ended: c.is.Ended, Error: c.is.Error, Attached: uint32(c.attached), Rows: c.is.Rows, Cols: c.is.Cols,
	}
}

// endedSince returns since when the console has ended; zero if it has not.
func (c *console) endedSince() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endedAt
}
