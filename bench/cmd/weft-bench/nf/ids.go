package nf

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/nf/ids"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/asowner"
)

func idsCommand() *cobra.Command {
	var cfg ids.Config
	var file, only, share string
	cmd := &cobra.Command{
		Use:   "ids A B",
		Short: "Run an intrusion detection between two interfaces",
		Long: `Run an intrusion detection that stands between two interfaces of its network
namespace: every frame that comes by one goes out by the other, unchanged, and
each rule that it meets gives an alert, appended to a file. It is one thread.
When it is interrupted it prints what it did as JSON: packets, alerts, time of
a packet and how much that varies, idle time, processor time, switches of contexts.

Rules are lines of KIND NAME KEY=VALUE…:

  content  shell  text="/bin/sh" nocase protocol=tcp dport=80
  protocol x11    protocol=tcp dport=6000-6063 flags=S
  anomaly  sled   is=run-above:64

With --share or --only it has a part of the rules: so several in a chain share
the work. Interfaces must leave no checksums or segments to others; those of
a lab do not. Needs root.`,
		Example: `  weft nf ids rules 200 > rules.txt
  weft lab exec ids -- weft nf ids eth0 eth1 --rules rules.txt --alerts alerts.log
  weft nf ids eth0 eth1 --rules rules.txt --share 1/4 --alerts alerts.log --sync`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.A, cfg.B = args[0], args[1]
			var err error
			if cfg.Rules, err = idsRules(cmd, file, only, share); err != nil {
				return err
			}
			cfg.Ready = func() {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s between %s and %s, with %d rules\n", ids.Stands, cfg.A, cfg.B, len(cfg.Rules))
			}
			ctx, stop := cli.Signals(cmd)
			defer stop()
			r, err := ids.Run(ctx, cfg)
			if err != nil {
				return err
			}
			b, err := cli.ToJSON(r)
			if err == nil {
				_, err = cmd.OutOrStdout().Write(b)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "rules", "", "the rules, in FILE")
	f.StringVar(&share, "share", "", "have only the Kth of N equal parts of the rules: K/N")
	f.StringVar(&only, "only", "", "have only rules of a kind: content, protocol or anomaly")
	f.StringVar(&cfg.Alerts, "alerts", "", "append alerts to FILE (default: they are counted)")
	f.BoolVar(&cfg.Sync, "sync", false, "have each alert on the disk before its frame goes on (O_DSYNC)")
	f.BoolVar(&cfg.OneByOne, "one-by-one", false, "search for each text by itself, so that the time grows with the rules")
	_ = cmd.MarkFlagFilename("rules")  // the flag is there
	_ = cmd.MarkFlagFilename("alerts") // likewise
	cmd.AddCommand(idsRulesCommand())
	return cmd
}

// idsRules reads the rules that flags name.
func idsRules(cmd *cobra.Command, file, only, share string) ([]ids.Rule, error) {
	if file == "" {
		return nil, cli.Usagef(cmd, "no rules: say --rules FILE; weft nf ids rules 200 writes an example")
	}
	var part ids.Share
	if share != "" {
		var err error
		if part, err = ids.ParseShare(share); err != nil {
			return nil, cli.Usagef(cmd, "%w", err)
		}
	}
	text, err := asowner.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	rules, err := ids.ParseRules(file, string(text))
	if err != nil {
		return nil, err
	}
	return ids.Select(rules, ids.Kind(only), part)
}

func idsRulesCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "rules N",
		Short:   "Print N rules as an example",
		Long:    "Print N rules that were made up, three in five of them of content.",
		Example: "  weft nf ids rules 200 > rules.txt",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var n int
			if _, err := fmt.Sscanf(args[0], "%d", &n); err != nil || n < 1 || n > ids.MostRules {
				return cli.Usagef(cmd, "%q rules: want 1 to %d", args[0], ids.MostRules)
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), ids.Example(n))
			return err
		},
	}
}
