package kernels

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/dpmf-go/dpmf/internal/cpu"
)

// elementType ends the name of every kernel: GramF32, HashU64.
var elementType = regexp.MustCompile(`(F32|F64|[IU](8|16|32|64))$`)

// packageFiles parses the package's files whose names the filter accepts.
func packageFiles(t *testing.T, accept func(name string) bool) map[string]*ast.File {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if !accept(name) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = f
	}
	if len(files) == 0 {
		t.Fatal("no Go files in the test's directory")
	}
	return files
}

// functions maps the names of the files' plain functions to their file.
func functions(files map[string]*ast.File) map[string]string {
	where := map[string]string{}
	for name, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				where[fn.Name.Name] = name
			}
		}
	}
	return where
}

func isTest(name string) bool   { return strings.HasSuffix(name, "_test.go") }
func isSource(name string) bool { return !isTest(name) }

// TestInfoListsEveryKernel holds the registry to the exported functions named like
// kernels, and each of them to a benchmark, a fuzz function and the files of a family.
func TestInfoListsEveryKernel(t *testing.T) {
	sources := functions(packageFiles(t, isSource))
	tests := packageFiles(t, isTest)
	var listed []string
	for _, k := range registry {
		if slices.Contains(listed, k.Name) {
			t.Errorf("%s is registered twice", k.Name)
		}
		listed = append(listed, k.Name)
		file, ok := sources[k.Name]
		if !ok {
			t.Errorf("%s is registered but no such function exists", k.Name)
			continue
		}
		if k.Description == "" {
			t.Errorf("%s has no description", k.Name)
		}
		for _, prefix := range []string{"Benchmark", "Fuzz"} {
			if !covered(tests, prefix, k.Name) {
				t.Errorf("no test file with a %s function calls %s", prefix, k.Name)
			}
		}
		for _, suffix := range []string{"_generic.go", "_amd64.go", "_noasm.go"} {
			name := strings.TrimSuffix(file, ".go") + suffix
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s in %s: %v", k.Name, file, err)
			}
		}
	}
	for name, file := range sources {
		if isKernelName(name) && !slices.Contains(listed, name) {
			t.Errorf("%s in %s is not in the registry of info.go", name, file)
		}
	}
}

// covered reports whether a test file has a function with the prefix and calls the kernel.
func covered(tests map[string]*ast.File, prefix, kernel string) bool {
	for _, f := range tests {
		has, calls := false, false
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				has = has || strings.HasPrefix(n.Name.Name, prefix)
			case *ast.CallExpr:
				id, ok := n.Fun.(*ast.Ident)
				calls = calls || ok && id.Name == kernel
			}
			return true
		})
		if has && calls {
			return true
		}
	}
	return false
}

func isKernelName(name string) bool {
	return unicode.IsUpper([]rune(name)[0]) && elementType.MatchString(name)
}

func TestIsKernelName(t *testing.T) {
	for name, want := range map[string]bool{
		"GramF32": true, "PairSumI16": true, "HashU64": true, "Stride": false, "Info": false,
		"gramF32": false, "axpyF32Generic": false, "SelectTier": false, "TopKScratch": false,
	} {
		if isKernelName(name) != want {
			t.Errorf("isKernelName(%q) = %v", name, !want)
		}
	}
}

// TestInfoNamesTheTier checks what a user reads against the dispatchers' state.
func TestInfoNamesTheTier(t *testing.T) {
	before := cpu.Active()
	defer func() {
		if err := SelectTier(before.String()); err != nil {
			t.Error(err)
		}
	}()
	for _, tier := range cpu.Tiers {
		if tier > before {
			continue
		}
		if err := SelectTier(tier.String()); err != nil {
			t.Fatal(err)
		}
		list := Info()
		if len(list) != len(registry) {
			t.Fatalf("Info lists %d kernels, the registry %d", len(list), len(registry))
		}
		for _, k := range list {
			if k.Active != tier.String() || k.Active != Tier() || k.Reason == "" || !slices.Contains(k.Tiers, k.Active) {
				t.Errorf("on %s: %+v", tier, k)
			}
			if lowered := strings.Contains(k.Reason, "lowered"); lowered != (tier < cpu.Detected()) {
				t.Errorf("on %s of %s the reason is %q", tier, cpu.Detected(), k.Reason)
			}
		}
	}
}
