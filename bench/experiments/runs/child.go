package runs

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/lab"
)

// mark is the environment variable by which all that a run starts is known,
// however it has been adopted since.
const mark = "WEFT_EXPERIMENT_RUN"

// child runs the process of a run to its end, and sees that nothing of it is
// left. When ctx ends it tells the process to clean up, and kills it if it does
// not. It calls started when the process is known.
func (s *Server) child(ctx context.Context, rec *record, dir string, started func(record)) error {
	log, err := asowner.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append(append([]string{}, s.Program[1:]...), rec.Experiment, "--dir", dir, "--runs", strconv.Itoa(rec.Rounds), "--limit", (time.Duration(rec.Minutes) * time.Minute).String())
	if rec.Quick {
		args = append(args, "--quick")
	}
	rec.Mark = rand.Text()
	cmd := exec.Command(s.Program[0], args...)
	cmd.Stderr = log
	cmd.Env = append(os.Environ(), mark+"="+rec.Mark)
	// It cleans up when this process dies, and gets no signals of its terminal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
	begun, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		// The thread lives as long as the child, which is told when it dies.
		runtime.LockOSThread()
		err := cmd.Start()
		begun <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	if err := <-begun; err != nil {
		return fmt.Errorf("start %s: %w", s.Program[0], err)
	}
	rec.Process = cmd.Process.Pid
	started(*rec)
	select {
	case err = <-ended:
	case <-ctx.Done():
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err = <-ended:
		case <-time.After(s.Patience):
			_ = cmd.Process.Kill()
			err = <-ended
		}
	}
	leftovers(*rec, 0, s.Log)
	if err != nil {
		if words := lastWords(dir); words != "" {
			return errors.New(words)
		}
		return fmt.Errorf("it ended: %w", err)
	}
	return nil
}

// settle is how long what a process has started may take to follow it.
const settle = 2 * time.Second

// leftovers gives the process of a run time to end, and then ends what is left of
// the run: its processes, and the labs that it has made.
func leftovers(rec record, patience time.Duration, log *slog.Logger) {
	if rec.Mark == "" {
		return
	}
	for until := time.Now().Add(patience); slices.Contains(marked(rec.Mark), rec.Process) && time.Now().Before(until); {
		time.Sleep(100 * time.Millisecond)
	}
	for until := time.Now().Add(settle); len(marked(rec.Mark)) > 0 && time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
	}
	left := marked(rec.Mark)
	if len(left) == 0 {
		return
	}
	log.Warn("a run has left processes, which are ended", "run", rec.Run, "processes", left)
	if slices.Contains(left, rec.Process) {
		_ = syscall.Kill(rec.Process, syscall.SIGKILL) // so that nobody owns its labs
	}
	if os.Geteuid() == 0 {
		takeDown(rec.Process, log)
	}
	for range 100 { // those killed take a moment to go
		left := marked(rec.Mark)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(20 * time.Millisecond)
	}
	log.Error("processes of a run do not end", "run", rec.Run, "processes", marked(rec.Mark))
}

// takeDown takes down the labs that an experiment of a process has made and
// left.
func takeDown(pid int, log *slog.Logger) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	orphans, err := lab.Orphans()
	for _, o := range orphans {
		if strings.HasPrefix(o.Lab, fmt.Sprintf("exp-%d-", pid)) {
			err = errors.Join(err, lab.Down(ctx, o.Lab))
		}
	}
	if err != nil {
		log.Error("a lab of an experiment could not be taken down; weft lab prune does", "error", err)
	}
}

// marked returns the processes that bear a mark.
func marked(value string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file) // empty of one that has ended
		if err != nil || !bytes.Contains(append(env, 0), []byte(mark+"="+value+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
