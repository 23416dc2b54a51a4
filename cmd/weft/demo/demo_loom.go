package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/loom"
)

// loomPlan is the plan in whose processes the controller is left running: in its
// page services are moved between them.
const loomPlan = "split"

// labSocket is where the lab service of the demo answers.
func (d *Demo) labSocket() string { return filepath.Join(d.dir, "lab.sock") }

// openLoom leaves everything as its page needs it: the controller in the
// processes of a plan, and the service that makes labs beside it.
func (d *Demo) openLoom(ctx context.Context) error {
	if d.plan == "" {
		d.progress("controller again, in the processes of the plan " + loomPlan)
		if err := d.endController(); err != nil {
			return err
		}
		d.plan = loomPlan
		if _, err := d.startController(ctx); err != nil {
			return err
		}
	}
	d.progress("weft lab serve, which makes labs for the page in the browser")
	if err := d.startLabService(ctx); err != nil {
		return err
	}
	_, err := d.AwaitDiscovery(ctx)
	return err
}

// startLabService starts weft lab serve as a process that outlives the demo.
func (d *Demo) startLabService(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	name := filepath.Join(d.dir, "lab.log")
	log, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(exe, "lab", "serve", "--socket", d.labSocket(), "--allow", "up,down")
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	if err := os.WriteFile(d.labPID(), []byte(strconv.Itoa(c.Process.Pid)), 0o644); err != nil {
		return err
	}
	return until(ctx, 20*time.Second, "the lab service to answer", func() (bool, error) {
		select {
		case err := <-ended:
			text, _ := os.ReadFile(name) // as far as there is one
			return false, fmt.Errorf("weft lab serve ended (%w):\n%s", err, lastLines(string(text), 5))
		default:
		}
		_, err := os.Stat(d.labSocket())
		return err == nil, nil
	})
}

func (d *Demo) labPID() string { return filepath.Join(d.dir, "lab.pid") }

// endLabService stops the lab service, if it runs.
func (d *Demo) endLabService() error {
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p := processIn(d.labPID(), d.labSocket())
		if p == nil {
			return nil
		}
		if p.Signal(signal) != nil {
			return nil // it has ended
		}
		for range 100 {
			if processIn(d.labPID(), d.labSocket()) == nil {
				return nil
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return errors.New("the lab service does not end")
}

// processIn returns the process whose number a file has, nil if there is none: a
// process of that number without an argument is not it.
func processIn(file, argument string) *os.Process {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(line), argument) {
		return nil
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil
	}
	return p
}

// loomAddress is a line that says where the page in the browser is.
func (d *Demo) loomAddress() string {
	if _, built := loom.Files(); !built {
		return "loom: not built into this program; make build does so where npm is installed"
	}
	return "loom: " + d.server() + "/"
}
