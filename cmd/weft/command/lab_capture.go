package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/asowner"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/machine"
)

func labCaptureCommand() *cobra.Command {
	var name, file string
	var attended bool
	var what lab.Capture
	cmd := &cobra.Command{
		Use:   "capture NODE",
		Short: "Write what passes the interfaces of a node, as pcapng",
		Long: `Write the packets that pass an interface of a host, or one port or all ports of a
switch, to standard output or a file, in the format pcapng, until interrupted. It needs
dumpcap (Debian package tshark) on the machine of the node.`,
		Example: `  weft lab capture h1 --filter 'icmp or arp' | tshark -r -
  weft lab capture s1 --port 2 -w s1.pcapng`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if file == "" && cli.Terminal(os.Stdout) {
				return cli.Usagef(cmd, "a capture is not for a terminal: name a file with -w, or give it to another program, such as `| tshark -r -`")
			}
			if file != "" {
				out, err := asowner.Create(file)
				if err != nil {
					return fmt.Errorf("write the capture: %w", err)
				}
				defer out.Close()
				os.Stdout = out
			}
			what.Node = args[0]
			l, far, err := labAnywhere(name)
			if err != nil {
				return err
			}
			start := func(capture *exec.Cmd) error { return l.StartCapture(capture, what) }
			if far != nil {
				start = func(capture *exec.Cmd) error { return far.StartCapture(capture, what) }
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			capture := exec.Command(lab.CaptureProgram)
			hold, err := capture.StdinPipe()
			if err != nil {
				return err
			}
			defer hold.Close()
			err = machine.Attend(ctx, capture, machine.Attended{Input: attended}, func() error { return start(capture) })
			if ctx.Err() != nil {
				return nil
			}
			return labEnded(err)
		},
	}
	labNameFlag(cmd, &name)
	f := cmd.Flags()
	f.Uint16Var(&what.Port, "port", 0, "the port of a switch (default: all, at most 64)")
	f.StringVar(&what.Filter, "filter", "", "which packets, as in pcap-filter(7)")
	f.StringVarP(&file, "write", "w", "", "the file to write")
	f.BoolVar(&attended, "attended", false, "end at the end of standard input")
	f.MarkHidden("attended") // of parts of labs on several machines
	cmd.MarkFlagFilename("write")
	return cmd
}

// labAttendCommand is weft lab exec for somebody on another machine.
func labAttendCommand() *cobra.Command {
	var name string
	var a machine.Attended
	cmd := &cobra.Command{
		Use:    "attend NODE -- COMMAND [ARG...]",
		Short:  "Run a command at a node for somebody on another machine",
		Hidden: true,
		Args:   cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := labNamed(name)
			if err != nil {
				return err
			}
			return labEnded(l.AttendAt(cmd.Context(), args[0], exec.Command(args[1], args[2:]...), a)) //nolint:gosec // this is what it is for
		},
	}
	labNameFlag(cmd, &name)
	cmd.Flags().BoolVar(&a.Whole, "whole", false, "end what the command leaves in the background, too")
	return cmd
}

// labEnded ends this process as a command has ended that stands for it, and has said why.
func labEnded(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		os.Exit(exit.ExitCode())
	}
	return err
}
