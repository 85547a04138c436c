//go:build amd64 && gc && !noasm

package kernels

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dpmf-go/dpmf/asm"
)

// dispatchers are the packages that call assembly: the kernels, and the measurement
// of the machine's limits, to which the functions named Peak… belong.
var dispatchers = map[string]func(function string) bool{
	".": func(f string) bool { return !strings.HasPrefix(f, "Peak") },
	filepath.Join("..", "internal", "machine"): func(f string) bool { return strings.HasPrefix(f, "Peak") },
}

// TestDispatch proves from the source that no assembly function is reachable
// unless the CPU has every feature that the generator says it needs.
func TestDispatch(t *testing.T) {
	if len(asm.Features) == 0 {
		t.Fatal("asm.Features is empty")
	}
	for dir, owns := range dispatchers {
		fset := token.NewFileSet()
		features := maps.Clone(asm.Features)
		maps.DeleteFunc(features, func(f string, _ []string) bool { return !owns(f) })
		for _, problem := range checkDispatch(fset, dispatchFiles(t, fset, dir), features) {
			t.Errorf("%s: %s", dir, problem)
		}
	}
}

// dispatchFiles parses the package's sources for builds with assembly.
func dispatchFiles(t *testing.T, fset *token.FileSet, dir string) []*ast.File {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		if isTest(name) {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		// noasm files declare the same functions for other builds and call no assembly.
		if !strings.HasSuffix(name, "_noasm.go") {
			files = append(files, f)
		} else if importsAsm(f) {
			t.Errorf("%s imports package asm", name)
		}
	}
	return files
}

func importsAsm(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool {
		p, err := strconv.Unquote(s.Path.Value)
		return err == nil && p == asmPath
	})
}

// TestOnlyDispatchersImportAsm keeps the rest of the module behind the dispatchers.
func TestOnlyDispatchersImportAsm(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != ".." {
			inside, err := filepath.Rel(".", path)
			if err != nil {
				return err
			}
			if strings.HasPrefix(d.Name(), ".") || path == filepath.Join("..", "kernels") || dispatchers[inside] != nil {
				return filepath.SkipDir
			}
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		if importsAsm(f) {
			t.Errorf("%s imports package asm", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckDispatch tries the checker on small sources, right and wrong.
func TestCheckDispatch(t *testing.T) {
	features := map[string][]string{"FAVX2": {"AVX2", "CMOV"}, "FAVX512": {"AVX512F", "BMI2"}}
	const right = `func f() { switch { case cpu.HasAVX512: asm.FAVX512(); case cpu.HasAVX2: asm.FAVX2(); default: g() } }`
	for _, c := range []struct {
		name, source string
		features     map[string][]string // or nil for those above
		want         string              // part of some problem; "" for none at all
	}{
		{"switch", right, nil, ""},
		{"if chain", `func f() { if cpu.HasAVX512 { asm.FAVX512() } else if cpu.HasAVX2 { asm.FAVX2() } else { g() } }`, nil, ""},
		{"early return", `func f() { if !cpu.HasAVX2 { g(); return }; for { if cpu.HasAVX512 { asm.FAVX512() } else { asm.FAVX2() } } }`, nil, ""},
		{"continue", `func f() { for { if !cpu.HasAVX2 { g(); continue }; if cpu.HasAVX512 { asm.FAVX512() } else { asm.FAVX2() } } }`, nil, ""},
		{"early return from each", `func f() { if cpu.HasAVX512 { asm.FAVX512(); return }; if cpu.HasAVX2 { asm.FAVX2(); return }; g() }`, nil, ""},
		{"conjunction", `func f() { if n > 3 && cpu.HasAVX512 { asm.FAVX512(); return }; if cpu.HasAVX2 && !cpu.HasAVX512 { asm.FAVX2() } }`, nil, ""},
		{"helper", `func f() { if !cpu.HasAVX2 { return }; h() }; func h() { if cpu.HasAVX512 { asm.FAVX512() } else { asm.FAVX2() } }`, nil, ""},
		{"recursive helper", `func f() { if cpu.HasAVX512 { h() } else if cpu.HasAVX2 { asm.FAVX2() } }; func h() { asm.FAVX512(); h() }`, nil, ""},

		{"no gate", `func f() { asm.FAVX512(); if cpu.HasAVX2 { asm.FAVX2() } }`, nil, "FAVX512 needs AVX512F"},
		{"too low a gate", `func f() { switch { case cpu.HasAVX2: asm.FAVX512(); asm.FAVX2() } }`, nil, "FAVX512 needs AVX512F"},
		{"too high a gate", `func f() { switch { case cpu.HasAVX512: asm.FAVX512(); asm.FAVX2() } }`, nil, "FAVX2 is outside the branch"},
		{"default", `func f() { switch { case cpu.HasAVX512: asm.FAVX512(); default: asm.FAVX2() } }`, nil, "FAVX2 needs AVX2"},
		{"either gate", `func f() { switch { case cpu.HasAVX512, cpu.HasAVX2: asm.FAVX512() }; if cpu.HasAVX2 { asm.FAVX2() } }`, nil, "FAVX512 needs AVX512F"},
		{"disjunction", `func f() { if cpu.HasAVX512 || n > 3 { asm.FAVX512() } else if cpu.HasAVX2 { asm.FAVX2() } }`, nil, "FAVX512 needs AVX512F"},
		{"negated", `func f() { if !cpu.HasAVX512 { asm.FAVX512() } else { asm.FAVX2() } }`, nil, "FAVX512 needs AVX512F"},
		{"check without exit", `func f() { if !cpu.HasAVX2 { g() }; if cpu.HasAVX512 { asm.FAVX512() } else { asm.FAVX2() } }`, nil, "FAVX2 needs AVX2"},
		{"exit from an inner block only", `func f() { { if !cpu.HasAVX2 { return } }; for { if !cpu.HasAVX512 { break } }; asm.FAVX512() }`, nil, "FAVX512 needs AVX512F"},
		{"fallthrough", `func f() { switch { case n > 3: fallthrough; case cpu.HasAVX512: asm.FAVX512(); case cpu.HasAVX2: asm.FAVX2() } }`, nil, "fallthrough"},
		{"goto", `func f() { goto L; L: switch { case cpu.HasAVX512: asm.FAVX512(); case cpu.HasAVX2: asm.FAVX2() } }`, nil, "goto"},
		{"switch on a value", `func f() { switch n { case cpu.HasAVX512: asm.FAVX512() }; if cpu.HasAVX2 { asm.FAVX2() } }`, nil, "FAVX512 needs AVX512F"},
		{"another package's flag", `func f() { if other.HasAVX512 { asm.FAVX512() } else if cpu.HasAVX2 { asm.FAVX2() } }`, nil, "FAVX512 needs AVX512F"},
		{"closure", `func f() { if cpu.HasAVX512 { run(func() { asm.FAVX512() }) } else if cpu.HasAVX2 { asm.FAVX2() } }`, nil, "FAVX512 needs AVX512F"},
		{"function value", `func f() { if cpu.HasAVX512 { p := asm.FAVX512; p() } else if cpu.HasAVX2 { asm.FAVX2() } }`, nil, "other than in a direct call"},
		{"initializer", `var x = asm.FAVX512(); func f() { if cpu.HasAVX2 { asm.FAVX2() } }`, nil, "FAVX512 needs AVX512F"},
		{"method", `func (t T) f() { asm.FAVX512(); if cpu.HasAVX2 { asm.FAVX2() } }`, nil, "FAVX512 needs AVX512F"},
		{"exported helper", `func f() { if cpu.HasAVX512 { H() } else if cpu.HasAVX2 { asm.FAVX2() } }; func H() { asm.FAVX512() }`, nil, "FAVX512 needs AVX512F"},
		{"helper with two callers", `func f() { if cpu.HasAVX512 { h() } else if cpu.HasAVX2 { asm.FAVX2(); h() } }; func h() { asm.FAVX512() }`, nil, "FAVX512 needs AVX512F"},
		{"helper as a value", `func f() { if cpu.HasAVX512 { h() } else if cpu.HasAVX2 { asm.FAVX2() } }; func h() { asm.FAVX512() }; var v = h`, nil, "FAVX512 needs AVX512F"},
		{"helper nobody calls", `func f() { if cpu.HasAVX2 { asm.FAVX2() } }; func h() { asm.FAVX512() }`, nil, "FAVX512 needs AVX512F"},
		{"two places", right + `; func h() { if cpu.HasAVX512 { asm.FAVX512() } }`, nil, "FAVX512 is called from 2 places"},
		{"no place", `func f() { if cpu.HasAVX512 { asm.FAVX512() } }`, nil, "FAVX2 is called from 0 places"},
		{"not in the table", `func f() { if cpu.HasAVX512 { asm.GAVX512() } }`, nil, "GAVX512 is not in asm.Features"},
		{"feature outside the bundle", right, map[string][]string{"FAVX2": {"AVX512VL"}, "FAVX512": {"AVX512VNNI"}}, "FAVX512 needs AVX512VNNI"},
		{"AVX2 function with an AVX-512 instruction", right, map[string][]string{"FAVX2": {"AVX512VL"}, "FAVX512": nil}, "FAVX2 needs AVX512VL"},
		{"no tier in the name", `func f() { if cpu.HasAVX2 { asm.F() } }`, map[string][]string{"F": nil}, "does not name its tier"},
		{"hidden package", `func f() { cpu := other; switch { case cpu.HasAVX512: asm.FAVX512(); case cpu.HasAVX2: asm.FAVX2() } }`, nil, "hides the package"},
		{"hidden by a parameter", `func f(asm T) { switch { case cpu.HasAVX512: asm.FAVX512(); case cpu.HasAVX2: asm.FAVX2() } }`, nil, "hides the package"},
		{"raised flag", `func f() { cpu.HasAVX512 = true; if cpu.HasAVX512 { asm.FAVX512() } else if cpu.HasAVX2 { asm.FAVX2() } }`, nil, "assigns to cpu.HasAVX512"},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := "package p\nimport (\"" + asmPath + "\"; \"" + cpuPath + "\")\n" + c.source
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, "p.go", source, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			table := c.features
			if table == nil {
				table = features
			}
			problems := checkDispatch(fset, []*ast.File{f}, table)
			switch {
			case c.want == "" && len(problems) > 0:
				t.Errorf("right source, but %q", problems)
			case c.want != "" && !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }):
				t.Errorf("problems %q, want one about %q", problems, c.want)
			}
		})
	}
}
