package command

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/cmd/weft/cli"
)

func labOutputFlag(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "table", "table, json or yaml")
}

func labCheckOutput(output string) error {
	switch output {
	case "table", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output %q: want table, json or yaml", output)
}

// labTable writes aligned columns.
type labTable struct{ *tabwriter.Writer }

func (t *labTable) row(cells ...any) {
	text := make([]string, len(cells))
	for i, c := range cells {
		text[i] = fmt.Sprint(c)
		if text[i] == "" {
			text[i] = "-"
		}
	}
	fmt.Fprintln(t, strings.Join(text, "\t"))
}

// labPrint writes v as JSON or YAML, or calls table for people.
func labPrint(w io.Writer, output string, v any, table func(*labTable)) error {
	if err := labCheckOutput(output); err != nil {
		return err
	}
	if output == "table" {
		t := &labTable{tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
		table(t)
		return t.Flush()
	}
	b, err := cli.ToJSON(v)
	if err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	if output == "yaml" {
		if b, err = cli.AsYAML(b); err != nil {
			return fmt.Errorf("encode the output: %w", err)
		}
	}
	_, err = w.Write(b)
	return err
}
