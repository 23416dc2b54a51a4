package machine

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Attended says what ends a command that runs for somebody on another machine.
type Attended struct {
	Whole bool // with the command ends what it has left in the background
	Input bool // it ends at the end of this process's input, which is not the command's
}

// attendedEnv is the environment variable by which what runs for somebody is known.
const attendedEnv = "WEFT_LAB_ATTENDED"

// errAlone is returned by Attend if nobody is there any more.
var errAlone = errors.New("whoever asked for it has gone")

// Attend runs a prepared command, which start starts, with this process's outputs, and its
// terminal, until it ends. Once nobody takes what is written, as when ssh has lost the
// client, or this process is hung up, it ends the command and all that it has left behind.
func Attend(ctx context.Context, cmd *exec.Cmd, a Attended, start func() error) error {
	ctx, leave := signal.NotifyContext(ctx, syscall.SIGHUP, syscall.SIGTERM, os.Interrupt)
	defer leave()
	mark := rand.Text()
	cmd.Env = append(cmd.Environ(), attendedEnv+"="+mark)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if !a.Input && cmd.Stdin == nil {
		cmd.Stdin = os.Stdin
		_, err := unix.IoctlGetTermios(0, unix.TCGETS)
		cmd.SysProcAttr.Foreground = err == nil
	}
	if err := start(); err != nil {
		return err
	}
	go func() {
		awaitNobody(int32(os.Stdout.Fd()))
		leave()
	}()
	if a.Input {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // it ends however it ends
			leave()
		}()
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	select {
	case err := <-ended:
		if a.Whole {
			err = errors.Join(err, EndMarked(rest, attendedEnv, mark))
		}
		return err
	case <-ctx.Done():
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP) // it may have ended meanwhile
	err := EndMarked(rest, attendedEnv, mark)
	<-ended
	return errors.Join(errAlone, err)
}

// awaitNobody waits until nobody reads from the other side of a pipe, socket or terminal.
func awaitNobody(fd int32) {
	for {
		fds := []unix.PollFd{{Fd: fd}} // the kernel adds POLLERR and POLLHUP
		n, err := unix.Poll(fds, -1)
		if n > 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}
