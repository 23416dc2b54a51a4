package experiments

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDataResumes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "data.csv")
	columns := []string{"case", "run", "value"}
	for name, test := range map[string]struct {
		file string // what is there
		has  []string
		not  []string
		fail string
	}{
		"nothing":       {"", nil, []string{"a/1"}, ""},
		"whole":         {"case,run,value\na,1,2\nb,1,3\n", []string{"a/1", "b/1", "a"}, []string{"a/2", "c"}, ""},
		"cut short":     {"case,run,value\na,1,2\nb,1", []string{"a/1"}, []string{"b/1"}, ""},
		"head cut":      {"case,ru", nil, []string{"a/1"}, ""},
		"other columns": {"case,value\na,2\n", nil, nil, "has the columns case,value, not case,run,value"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(test.file), 0o644); err != nil {
				t.Fatal(err)
			}
			d, err := OpenData(file, columns)
			if test.fail != "" {
				if err == nil || !strings.Contains(err.Error(), test.fail) {
					t.Fatalf("error %v, want one with %q", err, test.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			for _, key := range test.has {
				if !d.Has(strings.Split(key, "/")...) {
					t.Errorf("sample %s is missing", key)
				}
			}
			for _, key := range test.not {
				if d.Has(strings.Split(key, "/")...) {
					t.Errorf("sample %s is there", key)
				}
			}
			if err := d.Add([]string{"z", "9", "1"}); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(b), "case,run,value\n") || !strings.HasSuffix(string(b), "\nz,9,1\n") {
				t.Errorf("the file is %q", b)
			}
		})
	}
}

func TestDataWidth(t *testing.T) {
	d, err := OpenData(filepath.Join(t.TempDir(), "data.csv"), []string{"case", "run", "value"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Add([]string{"b", "1"}); err == nil {
		t.Error("a sample with a column too few is taken")
	}
}
