package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// maxOutput bounds what a machine may answer, maxWords what it may say besides.
	maxOutput = 16 << 20
	maxWords  = 16 << 10

	// sshFailed is the exit status of ssh(1) if it failed itself.
	sshFailed = 255
)

// quote writes a word as every shell reads it.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// asRoot is a script that runs its arguments as root.
const asRoot = `PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH
if [ "$(id -u)" = 0 ]; then exec "$@"; else exec sudo -n -- "$@"; fi`

// argv is the command that runs a command as root on a machine: that of OpenSSH, which asks
// nobody anything, and knows the machine's key or refuses it.
func (m *Machines) argv(k *Machine, terminal bool, command ...string) []string {
	argv := []string{"ssh", "-e", "none"}
	if m.Alone {
		argv = append(argv, "-F", "none", "-o", "IdentityAgent=none")
	}
	option := func(o string) { argv = append(argv, "-o", o) }
	for _, o := range []string{
		"BatchMode=yes", "StrictHostKeyChecking=yes", "UpdateHostKeys=no", "ConnectTimeout=10", "ConnectionAttempts=1",
		"ServerAliveInterval=5", "ServerAliveCountMax=3", "ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no",
		"PermitLocalCommand=no", "ControlMaster=no", "ControlPath=none", "LogLevel=ERROR",
	} {
		option(o)
	}
	if terminal {
		argv = append(argv, "-t")
	} else {
		argv = append(argv, "-T")
	}
	if m.KnownHosts != "" {
		option("UserKnownHostsFile=" + m.KnownHosts)
		option("GlobalKnownHostsFile=/dev/null")
	}
	if m.Identity != "" {
		option("IdentitiesOnly=yes")
		argv = append(argv, "-i", m.Identity)
	}
	if k.SSHPort != 0 {
		argv = append(argv, "-p", strconv.Itoa(int(k.SSHPort)))
	}
	if k.User != "" {
		argv = append(argv, "-l", k.User)
	}
	words := []string{"sh", "-c", quote(asRoot), "weft"}
	for _, w := range command {
		words = append(words, quote(w))
	}
	return append(argv, "--", k.Host, strings.Join(words, " "))
}

// run runs a command as root on a machine, with input, and returns what it wrote to
// standard output; if it failed, too.
func (m *Machines) run(ctx context.Context, k *Machine, input io.Reader, command ...string) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended, err := k.admit(ctx)
	if err != nil {
		return nil, err
	}
	defer ended()
	argv := m.argv(k, false, command...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	out, words := &bounded{most: maxOutput, over: cancel}, &bounded{most: maxWords}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, out, words
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is for this process
	err = cmd.Run()
	switch {
	case err == nil:
		return out.text.Bytes(), nil
	case out.exceeded:
		return nil, k.failed(fmt.Errorf("it answered with more than %d octets", maxOutput))
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, k.failed(errors.New("it did not answer in time"))
	case ctx.Err() != nil:
		return nil, k.failed(ctx.Err())
	case errors.Is(err, exec.ErrNotFound):
		return nil, errNoSSH
	}
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return nil, k.failed(err)
	}
	said := strings.TrimSpace(words.text.String())
	if exit.ExitCode() == sshFailed {
		return nil, k.failed(unreached(said, m.mend(k, said)))
	}
	if rest, ok := strings.CutPrefix(said, "weft: "); ok {
		said = strings.ReplaceAll(rest, "\nweft: ", "\n")
	}
	if strings.HasPrefix(said, "sudo:") || strings.Contains(said, "sudo: not found") {
		said += "\nlabs need root there: log in as root, or let the user run sudo without a password"
	}
	if said == "" {
		said = "the command failed: " + err.Error()
	}
	return out.text.Bytes(), k.failed(&failedThere{said})
}

// failedThere is what a command has said that ran on the machine and failed.
type failedThere struct{ said string }

func (f *failedThere) Error() string { return f.said }

func (k *Machine) failed(err error) error {
	return fmt.Errorf("machine %s (%s): %w", k.Name, k.Host, err)
}

// unreached says that ssh itself failed: what became of the command is not known.
func unreached(said, mend string) error {
	if said == "" {
		return errors.New("ssh lost the machine or did not reach it; " + mend)
	}
	return errors.New("ssh: " + said + "\n" + mend)
}

// mend says what to do about what ssh has said.
func (m *Machines) mend(k *Machine, said string) string {
	file := m.KnownHosts
	if file == "" {
		file = "~/.ssh/known_hosts"
	}
	name, port := k.Host, ""
	if k.SSHPort != 0 {
		port = fmt.Sprintf("-p %d ", k.SSHPort)
		if k.SSHPort != 22 {
			name = fmt.Sprintf("'[%s]:%d'", k.Host, k.SSHPort)
		}
	}
	switch {
	case strings.Contains(said, "IDENTIFICATION HAS CHANGED"):
		return fmt.Sprintf("another machine answers there, or this one has a new key: if so, remove the old one with `ssh-keygen -R %s -f %s`, and add the new", name, file)
	case strings.Contains(said, "Host key verification failed"):
		return fmt.Sprintf("the machine's key is not in %s: add it with `ssh-keyscan %s%s >>%s`, having compared it with the machine's own (ssh-keygen -lf)", file, port, k.Host, file)
	case strings.Contains(said, "Permission denied"):
		return "the machine lets nobody in by the keys that ssh has: put the public key of `identity:` into authorized_keys there, and say as whom to log in (ssh: root@HOST)"
	}
	return "is it on, does sshd run there, and is `ssh:` in the resource file right?"
}

// bounded takes in the first octets; over is called when there are more.
type bounded struct {
	text     bytes.Buffer
	most     int
	over     func()
	exceeded bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - b.text.Len(); len(p) > room {
		b.text.Write(p[:room])
		b.exceeded = true
		if b.over != nil {
			b.over()
		}
		return len(p), nil
	}
	return b.text.Write(p)
}

var errNoSSH = errors.New("ssh is not installed: apt install openssh-client")
