package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/layout"

	"github.com/weft-sdn/weft/lab/machine"

	"github.com/weft-sdn/weft/lab/topology"

	"github.com/weft-sdn/weft/lab/testbed"
)

// labAnywhere returns the lab of the --name flag, or the only one that is up: one of this
// machine, or one on several.
func labAnywhere(name string) (*lab.Lab, *testbed.Lab, error) {
	far, err := testbed.Names()
	if err != nil {
		return nil, nil, err
	}
	if name == "" && len(far) > 0 {
		here, err := machine.Names()
		if err != nil {
			return nil, nil, err
		}
		if all := append(here, far...); len(all) > 1 {
			return nil, nil, fmt.Errorf("%d labs are up: say which with --name; allowed: %s", len(all), strings.Join(all, ", "))
		}
		name = far[0]
	}
	if name != "" && slices.Contains(far, name) {
		l, err := testbed.Open(name)
		return nil, l, err
	}
	if name == "" {
		l, err := lab.OpenOnly()
		return l, nil, err
	}
	l, err := lab.Open(name)
	return l, nil, err
}

// labNamed is labAnywhere for what works on labs of this machine only.
func labNamed(name string) (*lab.Lab, error) {
	l, far, err := labAnywhere(name)
	if far != nil {
		return nil, labHere(far)
	}
	return l, err
}

// labHere says that a command does not work on labs on several machines.
func labHere(far *testbed.Lab) error {
	var parts []string
	for _, k := range far.Machines.List {
		parts = append(parts, fmt.Sprintf("%s on %s", testbed.PartName(far.Name, k.Name), k.Host))
	}
	return fmt.Errorf("lab %s is on several machines, where this command does not work; run it on a machine for its part: %s", far.Name, strings.Join(parts, ", "))
}

// labAgain is the command that is being run, for a part of the lab on another machine.
func labAgain(cmd *cobra.Command, part string, args []string) []string {
	again := []string{cmd.Name()}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "name" {
			again = append(again, "--"+f.Name+"="+f.Value.String())
		}
	})
	return append(append(again, "--name="+part, "--"), args...)
}

// labFarUp brings a lab up on several machines.
func labFarUp(ctx context.Context, cmd *cobra.Command, topo *topology.Topology, file string, opt testbed.Options) (*testbed.Lab, error) {
	machines, err := testbed.Read(file)
	if err != nil {
		return nil, err
	}
	progress := cli.NewProgress(cmd.ErrOrStderr())
	defer progress.Stop()
	opt.Progress = func(machine, doing string) { progress.Doing("machine " + machine + ": " + doing) }
	return testbed.Up(ctx, topo, machines, opt)
}

// labFarLink is `weft lab link` of a lab on several machines.
func labFarLink(cmd *cobra.Command, far *testbed.Lab, args []string, output string) error {
	ctx, stop := cli.Signals(cmd)
	defer stop()
	if len(args) == 0 {
		links, err := far.Links(ctx)
		if err != nil {
			return err
		}
		return labPrintLinks(cmd.OutOrStdout(), output, links, links)
	}
	if len(args) != 3 || !slices.Contains([]string{"up", "down", "silent", "set"}, args[2]) {
		return cli.Usagef(cmd, "name the two ends of the link and what to do: up, down, silent or set")
	}
	var flags []string
	for _, name := range []string{"rate", "delay", "jitter", "loss"} {
		if f := cmd.Flags().Lookup(name); f.Changed {
			flags = append(flags, "--"+name+"="+f.Value.String())
		}
	}
	link, err := far.SetLink(ctx, args[0], args[1], args[2], flags...)
	if err != nil {
		return err
	}
	return labPrintLinks(cmd.OutOrStdout(), output, link, []layout.LinkStatus{link})
}

// labDownAny takes down a lab of this machine, or one on several.
func labDownAny(ctx context.Context, name string, forget bool) error {
	if !testbed.Exists(name) {
		if forget {
			return fmt.Errorf("--forget: lab %s is not on several machines", name)
		}
		return lab.Down(ctx, name) // checks the name, finds processes without files
	}
	l, err := testbed.Open(name)
	if err != nil {
		return err
	}
	return l.Down(ctx, forget)
}

// labDownAll takes down all labs that this machine has or knows.
func labDownAll(ctx context.Context, forget bool) ([]string, error) {
	far, err := testbed.Names()
	errs := []error{err}
	for _, name := range far {
		errs = append(errs, labDownAny(ctx, name, forget))
	}
	here, err := lab.DownAll(ctx)
	return append(here, far...), errors.Join(append(errs, err)...)
}

// labListAll lists all labs that this machine has or knows.
func labListAll(ctx context.Context) ([]lab.Status, error) {
	all, err := lab.List(ctx)
	if err != nil {
		return nil, err
	}
	far, err := testbed.Names()
	if err != nil {
		return nil, err
	}
	for _, name := range far {
		if l, err := testbed.Open(name); err == nil {
			all = append(all, l.Status(ctx))
		} else {
			all = append(all, lab.Status{Name: name, State: "half made"})
		}
	}
	return all, nil
}
