// Package man is the command weft man: the manual pages of all commands, and their
// reference.
//
// Only cmd/weft-bench imports it.
package man

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/weft-sdn/weft/cmd/weft/run"
	"github.com/weft-sdn/weft/internal/asowner"
)

func Command() *cobra.Command {
	var markdown bool
	cmd := &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of all commands",
		Long: `Write the manual pages of all commands, in section 1, to a directory. With
--markdown it is the reference of the commands instead, a file for each of those
directly below weft, as make reference has it written to docs/reference.`,
		Example: `  weft man /usr/local/share/man/man1
  weft man --markdown docs/reference`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := asowner.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if markdown {
				return writeReference(root, args[0])
			}
			header := &doc.GenManHeader{Section: "1", Source: "Weft " + run.Build().Version, Manual: "Weft"}
			return asowner.Do(args[0], func() error { return doc.GenManTree(root, header, args[0]) })
		},
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "write a reference in Markdown instead")
	return cmd
}

// writeReference writes a file for each command below root, and an index.
func writeReference(root *cobra.Command, dir string) error {
	var index strings.Builder
	index.WriteString("# Reference of the commands\n\nAs `weft man --markdown` writes it. The API has [a reference of its own](api.md).\n")
	for _, g := range append(root.Groups(), &cobra.Group{Title: "Others:"}) {
		fmt.Fprintf(&index, "\n## %s\n\n| command | what it does |\n|---|---|\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID != g.ID || !documented(c) {
				continue
			}
			fmt.Fprintf(&index, "| [%s](%s.md) | %s |\n", c.CommandPath(), c.Name(), inMarkdown(c.Short))
			var b strings.Builder
			fmt.Fprintf(&b, "# %s\n", c.CommandPath())
			describeCommand(&b, c)
			if err := asowner.WriteFile(filepath.Join(dir, c.Name()+".md"), []byte(b.String()), 0o644); err != nil {
				return err
			}
		}
	}
	return asowner.WriteFile(filepath.Join(dir, "commands.md"), []byte(index.String()), 0o644)
}

// documented reports whether a command is one of ours, and for people.
func documented(c *cobra.Command) bool {
	return !c.Hidden && c.Name() != "help" && c.Name() != "completion"
}

// describeCommand writes all about a command and those below it, but for its
// heading.
func describeCommand(b *strings.Builder, c *cobra.Command) {
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(b, "\n%s\n", proseOf(about))
	if !c.HasSubCommands() || c.HasParent() && c.Parent() != c.Root() && c.Runnable() {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", c.UseLine())
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", outdented(c.Example))
	}
	if own := c.NonInheritedFlags(); own.HasAvailableFlags() {
		fmt.Fprintf(b, "\nFlags:\n\n```text\n%s```\n", own.FlagUsages())
	}
	if c.InheritedFlags().HasAvailableFlags() {
		fmt.Fprintf(b, "\nAnd those of %s.\n", c.Parent().CommandPath())
	}
	for _, sub := range c.Commands() {
		if documented(sub) {
			fmt.Fprintf(b, "\n## %s\n", sub.CommandPath())
			describeCommand(b, sub)
		}
	}
}

// proseOf makes Markdown of a help text: what is indented there is a block.
func proseOf(text string) string {
	var b strings.Builder
	inside := false
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		next := ""
		for _, l := range lines[i:] {
			if next = l; l != "" {
				break
			}
		}
		switch indent := strings.HasPrefix(line, "  "); {
		case indent && !inside:
			inside = true
			b.WriteString("```text\n")
		case !indent && inside && !(line == "" && strings.HasPrefix(next, "  ")):
			inside = false
			b.WriteString("```\n")
		}
		if inside {
			b.WriteString(strings.TrimPrefix(line, "  ") + "\n")
		} else {
			b.WriteString(inMarkdown(line) + "\n")
		}
	}
	if inside {
		b.WriteString("```\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// inMarkdown escapes what means something else in Markdown.
func inMarkdown(text string) string {
	return strings.NewReplacer("<", `\<`, "*", `\*`, "|", `\|`).Replace(text)
}

// outdented takes away the indentation of examples.
func outdented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
