package command

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/layout"

	"github.com/weft-sdn/weft/lab/topology"
)

func labLinkCommand() *cobra.Command {
	var name, output string
	cmd := &cobra.Command{
		Use:   "link [A B up|down|silent|set]",
		Short: "Show links; unplug, silence or shape one",
		Long: `Show every link as it is now; or, for the link between A and B (each a switch, a
host, or SWITCH:PORT where two switches have several links):

  down     unplug it: both ends lose carrier and switches report port status
  silent   lose every frame while both ends keep carrier
  up       undo either
  set      change rate, delay, jitter or loss, by the flags`,
		Example: `  weft lab link
  weft lab link s1 s2 down
  weft lab link s1:2 s2:3 silent
  weft lab link s1 s2 up
  weft lab link s1 s2 set --rate 10mbit --delay 5ms --loss 1%`,
		Args: cobra.RangeArgs(0, 3),
	}
	var rate, delay, jitter, loss string
	f := cmd.Flags()
	f.StringVar(&rate, "rate", "", "with set: rate such as 100mbit or 100M, or none")
	f.StringVar(&delay, "delay", "", "with set: one-way delay such as 5ms")
	f.StringVar(&jitter, "jitter", "", "with set: jitter such as 1ms")
	f.StringVar(&loss, "loss", "", "with set: loss such as 1%")
	labNameFlag(cmd, &name)
	labOutputFlag(cmd, &output)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := labCheckOutput(output); err != nil {
			return err
		}
		if len(args) == 3 && args[2] == "set" {
			if _, err := labChange(rate, delay, jitter, loss); err != nil {
				return cli.Usagef(cmd, "%v", err)
			}
		}
		l, far, err := labAnywhere(name)
		if err != nil {
			return err
		}
		if far != nil {
			return labFarLink(cmd, far, args, output)
		}
		if len(args) == 0 {
			links, err := l.Links()
			if err != nil {
				return err
			}
			return labPrintLinks(cmd.OutOrStdout(), output, links, links)
		}
		if len(args) != 3 {
			return cli.Usagef(cmd, "name the two ends of the link and what to do: up, down, silent or set")
		}
		ctx, stop := cli.Signals(cmd)
		defer stop()
		change := map[string]func(context.Context, string, string) error{
			"up": l.LinkUp, "down": l.LinkDown, "silent": l.LinkSilent,
			"set": func(ctx context.Context, a, b string) error {
				c, err := labChange(rate, delay, jitter, loss)
				if err != nil {
					return err
				}
				return l.ShapeLink(ctx, a, b, c)
			},
		}[args[2]]
		if change == nil {
			return cli.Usagef(cmd, "unknown action %q; allowed: up, down, silent, set", args[2])
		}
		if err := change(ctx, args[0], args[1]); err != nil {
			return err
		}
		link, err := l.Link(args[0], args[1])
		if err != nil {
			return err
		}
		return labPrintLinks(cmd.OutOrStdout(), output, link, []layout.LinkStatus{link})
	}
	return cmd
}

// labPrintLinks prints v as JSON or YAML, or links as a table.
func labPrintLinks(w io.Writer, output string, v any, links []layout.LinkStatus) error {
	return labPrint(w, output, v, func(t *labTable) {
		t.row("A", "B", "STATE", "RATE", "DELAY", "JITTER", "LOSS", "MADE OF")
		for _, k := range links {
			t.row(k.A, k.B, k.State, labUnless(k.Rate == 0, k.Rate), labUnless(k.Delay == 0, k.Delay),
				labUnless(k.Jitter == 0, k.Jitter), labUnless(k.Loss == 0, k.Loss), k.Made)
		}
	})
}

// labChange reads the flags of `weft lab link … set`; empty ones change nothing.
func labChange(rate, delay, jitter, loss string) (c lab.Change, err error) {
	if rate+delay+jitter+loss == "" {
		return c, errors.New("--rate, --delay, --jitter or --loss: nothing to set; give one of them")
	}
	if rate == "none" {
		c.Rate = new(topology.Rate)
	} else if c.Rate, err = labFlag("rate", rate, topology.ParseRate); err != nil {
		return c, err
	}
	if c.Delay, err = labFlag("delay", delay, topology.ParseDelay); err != nil {
		return c, err
	}
	if c.Jitter, err = labFlag("jitter", jitter, topology.ParseDelay); err != nil {
		return c, err
	}
	c.Loss, err = labFlag("loss", loss, topology.ParsePercent)
	return c, err
}

func labFlag[T any](flag, text string, parse func(string) (T, error)) (*T, error) {
	if text == "" {
		return nil, nil
	}
	v, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("--%s %w", flag, err)
	}
	return &v, nil
}

// labUnless is v for a table, nothing if it is not set.
func labUnless(unset bool, v any) any {
	if unset {
		return ""
	}
	return v
}
