package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/wholefile"
)

// checkPorts returns an error if another process listens where the demo's controller
// is to listen: what that process answers would be taken for the controller's answers.
func checkPorts(listen, http string) error {
	for _, at := range []struct{ flag, address string }{{"listen", listen}, {"http", http}} {
		l, err := net.Listen("tcp", at.address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("--%s: %s is in use, perhaps by another controller; stop that one, or choose another address", at.flag, at.address)
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", at.flag, err)
		}
		_ = l.Close()
	}
	return nil
}

// startController starts the controller as a process of its own, which
// outlives the demo, and waits until it answers.
func (d *Demo) startController(ctx context.Context) (string, error) {
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return "", err
	}
	exe, err := companion.Find("weft")
	if err != nil {
		return "", err
	}
	log, err := os.OpenFile(filepath.Join(d.dir, "controller.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return "", err
	}
	defer log.Close()
	began := time.Now()
	listen := d.listen
	if d.secure {
		listen = "tls:" + listen
	}
	args := []string{"up", "--listen", listen, "--http", d.HTTP, "--data-dir", filepath.Join(d.dir, "data"), "--set", "gateway.lab=" + d.labSocket(), "--set", "gateway.experiments=" + d.experimentsSocket()}
	if d.ryu != "" {
		args = append(args, "--ryu", d.ryu)
	}
	args = append(args, d.further...)
	if d.plan != "" {
		args = append(args, d.plan)
	}
	c := exec.Command(exe, args...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return "", err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	if err := wholefile.Write(d.pidFile(), []byte(strconv.Itoa(c.Process.Pid)), 0o644); err != nil {
		return "", err
	}
	for {
		err := d.Ask(ctx, d.answers)
		if err == nil {
			return fmt.Sprintf("in %.1f s", time.Since(began).Seconds()), nil
		}
		select {
		case <-ended: //nolint:errcheck // its log says why
			text, _ := os.ReadFile(log.Name())
			return "", fmt.Errorf("the controller ended:\n%s", lastLines(string(text), 5))
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if time.Since(began) > 20*time.Second {
			return "", fmt.Errorf("the controller does not answer: %w", err)
		}
	}
}

// answers reports whether the controller serves, with all processes that its
// plan has.
func (d *Demo) answers(n *cli.Controller) error {
	if _, err := n.GetInfo(n.Ctx, &api.GetInfoRequest{}); err != nil || d.plan == "" {
		return err
	}
	m, err := n.ListWorkers(n.Ctx, &api.ListWorkersRequest{})
	if err != nil {
		return err
	}
	for _, w := range m.Workers {
		if w.State != "up" || !w.Current {
			return fmt.Errorf("worker %s is %s", w.Process, w.State)
		}
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (d *Demo) pidFile() string { return filepath.Join(d.dir, "controller.pid") }

// controllerProcess returns the controller's process, nil if there is none: a
// process of that number that runs something else is not it.
func (d *Demo) controllerProcess() *os.Process {
	return processIn(d.pidFile(), filepath.Join(d.dir, "data"))
}

// endController stops the controller, by force if it does not stop by itself.
func (d *Demo) endController() error {
	p := d.controllerProcess()
	if p == nil {
		return planned{d}.endWorkers()
	}
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := p.Signal(signal); err != nil {
			return planned{d}.endWorkers()
		}
		for range 100 {
			if d.controllerProcess() == nil {
				return planned{d}.endWorkers()
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return errors.New("the controller does not end")
}

// server is the URL of the controller's northbound.
func (d *Demo) server() string {
	if d.secure {
		return "https://" + d.HTTP
	}
	return "http://" + d.HTTP
}

// Ask makes calls of the controller's northbound.
func (d *Demo) Ask(ctx context.Context, f func(*cli.Controller) error) error {
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	r := &cli.Remote{Server: d.server(), CA: d.ca, TokenFile: d.tokenFile, Timeout: 10 * time.Second}
	c, done, err := r.Dial(cmd)
	if err != nil {
		return err
	}
	defer done()
	return f(c)
}
