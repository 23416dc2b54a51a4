package cli

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// flagColumns is how wide the help of flags is.
const flagColumns = 80

// WrapFlags has the usage of a root command and of all below it describe flags within
// 80 columns. It needs no template: the linker keeps all methods of all types in a
// program that has one.
func WrapFlags(root *cobra.Command) {
	root.SetUsageFunc(func(c *cobra.Command) error {
		var b bytes.Buffer
		out := c.OutOrStderr()
		usage := (&cobra.Command{}).UsageFunc() // cobra's own
		c.SetOut(&b)
		err := usage(c)
		c.SetOut(out)
		if err != nil {
			return err
		}
		text := b.String()
		right := func(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }
		if c.HasAvailableLocalFlags() {
			text = strings.Replace(text, right(c.LocalFlags().FlagUsages()), right(c.LocalFlags().FlagUsagesWrapped(flagColumns)), 1)
		}
		if c.HasAvailableInheritedFlags() {
			text = strings.Replace(text, right(c.InheritedFlags().FlagUsages()), right(c.InheritedFlags().FlagUsagesWrapped(flagColumns)), 1)
		}
		_, err = fmt.Fprint(out, text)
		return err
	})
}
