package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/backoff"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/keeper"
)

func labLogsCommand() *cobra.Command {
	var name string
	var follow bool
	var tail int
	cmd := &cobra.Command{
		Use:   "logs [HOST[/PROGRAM]]",
		Short: "Show what the programs of a lab's hosts have written",
		Long: `Show what the programs that a lab has started in its hosts have written to
stdout and stderr: those of all hosts, of one, or one of them. Of each, the
last megabyte is kept. Lines that begin with [weft lab] say how a program ended.`,
		Example: `  weft lab logs nrf
  weft lab logs amf1/amf -f
  weft lab logs --name 5gc-3 -n 20`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if tail < -1 {
				return cli.Usagef(cmd, "%d lines cannot be shown: give 0 or more, or -1 for all", tail)
			}
			l, far, err := labAnywhere(name)
			if err != nil {
				return err
			}
			if host, _, _ := strings.Cut(append(args, "")[0], "/"); far != nil && host != "" {
				return far.Become(host, func(part string) []string { return labAgain(cmd, part, args) })
			}
			if far != nil {
				return labHere(far)
			}
			logs, err := labLogsOf(l, append(args, "")[0])
			if err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			return labShowLogs(ctx, cmd.OutOrStdout(), l, logs, tail, follow)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			l, err := labNamed(name)
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, h := range l.Topology().Hosts {
				for _, p := range h.Run {
					names = append(names, h.Name+"/"+p.Name)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
	labNameFlag(cmd, &name)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as more is written, until interrupted")
	cmd.Flags().IntVarP(&tail, "lines", "n", -1, "the last lines of each program; -1: all that is kept")
	return cmd
}

// labLog is the log of one program.
type labLog struct {
	prefix string // of its lines; empty if it is the only one
	reader *keeper.LogReader
	rest   []byte // of a line that is not complete yet
}

// labLogsOf returns the logs that HOST, HOST/PROGRAM or nothing name.
func labLogsOf(l *lab.Lab, of string) ([]*labLog, error) {
	host, program, one := strings.Cut(of, "/")
	if host != "" || one {
		if _, err := l.Host(host); err != nil {
			return nil, err
		}
	}
	var logs []*labLog
	var names []string
	for _, h := range l.Topology().Hosts {
		for _, p := range h.Run {
			if host != "" && host != h.Name {
				continue
			}
			names = append(names, p.Name)
			if !one || program == p.Name {
				logs = append(logs, &labLog{prefix: h.Name + "/" + p.Name + ": ", reader: l.Log(h.Name, p.Name)})
			}
		}
	}
	switch {
	case len(logs) == 1:
		logs[0].prefix = ""
	case len(logs) > 1:
	case len(names) > 0:
		return nil, fmt.Errorf("host %s runs no program %q; allowed: %s", host, program, strings.Join(names, ", "))
	case host != "":
		return nil, fmt.Errorf("host %s runs no programs: run: in a topology file gives it some", host)
	default:
		return nil, fmt.Errorf("lab %s runs no programs: run: in a topology file gives its hosts some", l.Name())
	}
	return logs, nil
}

// labShowLogs prints logs and, if it is to follow them, what is added to them
// until ctx or the lab ends.
func labShowLogs(ctx context.Context, w io.Writer, l *lab.Lab, logs []*labLog, tail int, follow bool) error {
	for _, log := range logs {
		defer log.reader.Close()
		if err := log.show(w, tail); err != nil {
			return err
		}
	}
	for follow && lab.Exists(l.Name()) {
		if backoff.Sleep(ctx, 100*time.Millisecond) != nil {
			return nil
		}
		for _, log := range logs {
			if err := log.show(w, -1); err != nil {
				return err
			}
		}
	}
	for _, log := range logs {
		if len(log.rest) > 0 {
			if err := log.write(w, [][]byte{append(log.rest, '\n')}); err != nil {
				return err
			}
		}
	}
	return nil
}

// show prints the complete lines that there are now, or the last of them.
func (g *labLog) show(w io.Writer, tail int) error {
	text, err := io.ReadAll(g.reader)
	if err != nil {
		return fmt.Errorf("read a log: %w", err)
	}
	lines := slices.Collect(bytes.Lines(append(g.rest, text...)))
	g.rest = nil
	if n := len(lines); n > 0 && !bytes.HasSuffix(lines[n-1], []byte("\n")) {
		g.rest, lines = bytes.Clone(lines[n-1]), lines[:n-1]
	}
	if tail >= 0 {
		lines = lines[max(0, len(lines)-tail):]
	}
	return g.write(w, lines)
}

func (g *labLog) write(w io.Writer, lines [][]byte) error {
	for _, line := range lines {
		if _, err := fmt.Fprintf(w, "%s%s", g.prefix, line); err != nil {
			return err
		}
	}
	return nil
}

// labDied says which programs of a lab that has come up have died; nil if none has.
func labDied(ctx context.Context, l *lab.Lab) error {
	var died []error
	for _, p := range l.Programs(ctx) {
		if !p.Died() {
			continue
		}
		err := fmt.Errorf("host %s: program %s has died: %s", p.Host, p.Name, p.End)
		if said := l.LastWords(p.Host, p.Name); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		died = append(died, err)
	}
	if len(died) == 0 {
		return nil
	}
	return fmt.Errorf("%w\nthe lab is up all the same: see weft lab show and weft lab logs, and take it down with weft lab down %s", errors.Join(died...), l.Name())
}
