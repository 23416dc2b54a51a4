package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/weft-sdn/weft/bench/experiments"
	"github.com/weft-sdn/weft/bench/experiments/report"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/asowner"
)

// experimentReport is what weft experiment report prints.
type experimentReport struct {
	HTML    string                 `json:"html"` // files
	PDF     string                 `json:"pdf"`
	Figures []experimentReportPage `json:"figures"`
}

// experimentReportPage is a page of it.
type experimentReportPage struct {
	Page       int    `json:"page"`
	Experiment string `json:"experiment"`
	Figure     string `json:"figure"`
	Title      string `json:"title"`
}

func experimentReportCommand() *cobra.Command {
	var dir, output string
	var names []string
	for _, e := range allExperiments() {
		names = append(names, e.Name)
	}
	cmd := &cobra.Command{
		Use:   "report [NAME...]",
		Short: "Write a page of each figure of the experiments that were run",
		Long: `Write DIR/report.html, which needs no other file, and DIR/report.pdf, with a page
of each figure of the experiments that were run into DIR, or of those named: what
the paper says, Weft's figure beside the paper's, the table with its intervals
and verdicts, the machine and the conditions, and why Weft's figures differ.
Nothing is measured: weft experiment run does that.`,
		Example: `  weft experiment run all --quick
  weft experiment report
  weft experiment report msn-scaling --dir results -o json`,
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return cli.Usagef(cmd, "--output %q: want text or json", output)
			}
			list, err := experiments.Find(allExperiments(), args)
			if err != nil {
				return cli.Usagef(cmd, "%w", err)
			}
			r, err := writeReport(dir, list)
			if err != nil {
				return err
			}
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(r)
			}
			for _, f := range r.Figures {
				fmt.Fprintf(cmd.OutOrStdout(), "%d  %s, %s: %s\n", f.Page, f.Experiment, f.Figure, f.Title)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s, %s\n", r.HTML, r.PDF)
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", "experiments-data", "directory of the results")
	f.StringVarP(&output, "output", "o", "text", "text or json")
	cmd.MarkFlagDirname("dir")
	cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// writeReport writes the report of experiments, all that were run if none are
// named, into the directory of their results.
func writeReport(dir string, list []experiments.Experiment) (*experimentReport, error) {
	whatever := len(list) == 0
	if whatever {
		list = allExperiments()
	}
	var pages []report.Page
	for _, e := range list {
		of, err := report.Read(dir, e.Name)
		if whatever && errors.Is(err, report.ErrNotRun) {
			continue
		}
		if err != nil {
			return nil, err
		}
		pages = append(pages, of...)
	}
	if len(pages) == 0 {
		return nil, fmt.Errorf("%w into %s: weft experiment run all --quick", report.ErrNotRun, dir)
	}
	r := &experimentReport{HTML: filepath.Join(dir, "report.html"), PDF: filepath.Join(dir, "report.pdf")}
	for i, p := range pages {
		r.Figures = append(r.Figures, experimentReportPage{i + 1, p.Name, p.Figure.Name, p.Figure.Title})
	}
	for file, write := range map[string]func(io.Writer, []report.Page) error{r.HTML: report.HTML, r.PDF: report.PDF} {
		var b bytes.Buffer
		if err := write(&b, pages); err != nil {
			return nil, err
		}
		if err := asowner.WriteFile(file, b.Bytes(), 0o644); err != nil {
			return nil, err
		}
	}
	return r, nil
}
