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

	"github.com/weft-sdn/weft/internal/companion"
	"github.com/weft-sdn/weft/internal/wholefile"
	"github.com/weft-sdn/weft/loom"
)

// loomPlan is the plan in whose processes the controller is left running: in its
// page services are moved between them.
const loomPlan = "split"

// labSocket is where the lab service of the demo answers.
func (d *Demo) labSocket() string { return filepath.Join(d.dir, "lab.sock") }

// experimentsSocket is where the demo's service of experiments answers.
func (d *Demo) experimentsSocket() string { return filepath.Join(d.dir, "experiments.sock") }

// openLoom leaves everything as its page needs it: the controller in the
// processes of a plan, and beside it the services that make labs and run
// experiments.
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
	d.progress("weft lab serve and weft experiment serve, for the page in the browser")
	if err := d.startService(ctx, "lab", d.labSocket(), "lab", "serve", "--socket", d.labSocket(), "--allow", "up,down"); err != nil {
		return err
	}
	if err := d.startService(ctx, "experiments", d.experimentsSocket(), "experiment", "serve", "--socket", d.experimentsSocket(), "--dir", filepath.Join(d.dir, "experiments")); err != nil {
		return err
	}
	_, err := d.AwaitDiscovery(ctx)
	return err
}

// startService starts a service of the machine as a process that outlives the
// demo, and waits for its socket.
func (d *Demo) startService(ctx context.Context, what, socket string, args ...string) error {
	exe, err := companion.Find("weft")
	if err != nil {
		return err
	}
	name := filepath.Join(d.dir, what+".log")
	log, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(exe, args...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	if err := wholefile.Write(filepath.Join(d.dir, what+".pid"), []byte(strconv.Itoa(c.Process.Pid)), 0o644); err != nil {
		return err
	}
	return until(ctx, 20*time.Second, "answered by weft "+args[0]+" serve", func() (bool, error) {
		select {
		case err := <-ended:
			text, _ := os.ReadFile(name) // as far as there is one
			return false, fmt.Errorf("weft %s serve ended (%w):\n%s", args[0], err, lastLines(string(text), 5))
		default:
		}
		_, err := os.Stat(socket)
		return err == nil, nil
	})
}

// endServices stops the services of the machine that the demo has started.
func (d *Demo) endServices() error {
	return errors.Join(d.endService("lab", d.labSocket()), d.endService("experiments", d.experimentsSocket()))
}

func (d *Demo) endService(what, socket string) error {
	file := filepath.Join(d.dir, what+".pid")
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		p := processIn(file, socket)
		if p == nil || p.Signal(signal) != nil {
			return nil // it has ended
		}
		for range 100 {
			if processIn(file, socket) == nil {
				return nil
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return fmt.Errorf("the service of %s does not end", what)
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
