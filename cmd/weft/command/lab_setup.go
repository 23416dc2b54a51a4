package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/lab"
)

const (
	setupTime    = time.Minute // for one host
	setupsAtOnce = 8
)

// labSetup is what came of setting a host up.
type labSetup struct {
	Node    string `json:"node"`
	Machine string `json:"machine,omitempty"`
	Command string `json:"command"`
	Output  string `json:"output"`
	Error   string `json:"error,omitempty"`
}

func labSetupCommand() *cobra.Command {
	var name, output string
	cmd := &cobra.Command{
		Use:   "setup [HOST...]",
		Short: "Set the hosts of a lab up by the commands of its file",
		Long: `Run in each host of a lab what its file says as x-setup, a line for a shell, or in
those that are named: by this machine, or over ssh by the machines that a lab is spread
over. Hosts are set up side by side, each within a minute. The exit status is not zero
if a command fails; run it again then: commands should bear that.`,
		Example: `  weft lab setup
  weft lab setup h1 h2 --name net -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := labCheckOutput(output); err != nil {
				return err
			}
			l, far, err := labAnywhere(name)
			if err != nil {
				return err
			}
			var text []byte
			run := func(ctx context.Context, s *labSetup) (string, error) {
				return l.Exec(ctx, s.Node, "sh", "-c", s.Command)
			}
			if far != nil {
				text = []byte(far.File)
				run = func(ctx context.Context, s *labSetup) (string, error) {
					s.Machine = far.Mapping.MachineOf(s.Node)
					return far.Exec(ctx, s.Node, "sh", "-c", s.Command)
				}
			} else if text, err = l.Text(); err != nil {
				return err
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			results, err := labSetUp(ctx, lab.Setups(text), args, run)
			if err != nil {
				return err
			}
			err = labPrint(cmd.OutOrStdout(), output, results, func(w *labTable) {
				w.row("HOST", "MACHINE", "RESULT")
				for _, r := range results {
					w.row(r.Node, r.Machine, labSetupResult(r))
				}
			})
			if slices.ContainsFunc(results, func(r labSetup) bool { return r.Error != "" }) {
				err = errors.Join(err, errors.New("some hosts are not set up"))
			}
			return err
		},
	}
	labNameFlag(cmd, &name)
	labOutputFlag(cmd, &output)
	return cmd
}

func labSetupResult(r labSetup) string {
	if r.Error != "" {
		return "failed: " + cli.Plain(r.Error)
	}
	said := strings.TrimSpace(r.Output)
	return strings.TrimSpace("done " + cli.Plain(said[strings.LastIndexByte(said, '\n')+1:]))
}

// labSetUp runs the commands of the hosts that are named, or of all, some at a time.
func labSetUp(ctx context.Context, all []lab.Setup, named []string, run func(context.Context, *labSetup) (string, error)) ([]labSetup, error) {
	has := func(host string) bool {
		return slices.ContainsFunc(all, func(s lab.Setup) bool { return s.Node == host })
	}
	for _, host := range named {
		if !has(host) {
			return nil, fmt.Errorf("the lab's file has no x-setup of host %q", host)
		}
	}
	results := []labSetup{}
	for _, s := range all {
		if len(named) == 0 || slices.Contains(named, s.Node) {
			results = append(results, labSetup{Node: s.Node, Command: s.Command})
		}
	}
	if len(results) == 0 {
		return nil, errors.New("no host of the lab's file has x-setup, the command that sets it up")
	}
	places := make(chan struct{}, setupsAtOnce)
	var wg sync.WaitGroup
	for i := range results {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(ctx, setupTime)
			defer cancel()
			var err error
			if results[i].Output, err = run(ctx, &results[i]); err != nil {
				results[i].Error = err.Error()
			}
		})
	}
	wg.Wait()
	return results, nil
}
