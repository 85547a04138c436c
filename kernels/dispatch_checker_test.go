//go:build amd64 && gc && !noasm

package kernels

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/dpmf-go/dpmf/internal/cpu"
)

// flagFeatures is what a dispatcher may use once it knows that a flag of package
// cpu is set.
var flagFeatures = map[string][]string{
	"HasAVX2":   cpu.TierAVX2.Features(),
	"HasAVX512": cpu.TierAVX512.Features(),
}

// baseline are the features of asm.Features that every amd64 CPU has. MMX+ is
// the generator's name for the prefetch instructions, a part of SSE.
var baseline = []string{"CMOV", "MMX+", "SSE", "SSE2"}

// facts are the flags of package cpu whose value is known at a point of the
// program. Flags do not change while a kernel runs, so facts survive loops and calls.
type facts map[string]bool

// and returns what is known if both f and g hold.
func (f facts) and(g facts) facts {
	all := maps.Clone(f)
	if all == nil {
		all = facts{}
	}
	maps.Copy(all, g)
	if all["HasAVX512"] {
		all["HasAVX2"] = true
	}
	return all
}

// or returns what is known if f or g holds.
func (f facts) or(g facts) facts {
	common := facts{}
	for flag, value := range f {
		if other, ok := g[flag]; ok && other == value {
			common[flag] = value
		}
	}
	return common
}

func (f facts) features() []string {
	list := slices.Clone(baseline)
	for flag, set := range f {
		if set {
			list = append(list, flagFeatures[flag]...)
		}
	}
	return list
}

// callSite is one call, of an assembly function or of a function of the package.
type callSite struct {
	caller string // "" if it is not certain when the call happens
	callee string
	facts  facts // known at the call, without what the caller's callers know
	where  string
}

// dispatchChecker collects what the files of a package do with assembly functions
// and package cpu. It follows `if`, `switch {}` and early exits; whatever it does not
// understand yields no facts, so it errs towards complaining.
type dispatchChecker struct {
	fset     *token.FileSet
	asm, cpu string              // names of the packages in the file at hand
	declared map[string]bool     // functions of the package
	caller   string              // function at hand
	asmCalls []callSite          // of assembly functions
	calls    []callSite          // of functions of the package
	escapes  map[string]bool     // functions used as values
	called   map[*ast.Ident]bool // identifiers that are the function of a call
	problems []string
}

const (
	asmPath = "github.com/dpmf-go/dpmf/asm"
	cpuPath = "github.com/dpmf-go/dpmf/internal/cpu"
)

// checkDispatch returns a sentence for every way in which the files could reach an
// assembly function without the features it needs, and for every function of the
// table that is not called from exactly one place.
func checkDispatch(fset *token.FileSet, files []*ast.File, features map[string][]string) []string {
	c := &dispatchChecker{fset: fset, declared: map[string]bool{}, escapes: map[string]bool{}, called: map[*ast.Ident]bool{}}
	var bodies []*ast.FuncDecl
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				c.declared[fn.Name.Name] = true
			}
		}
	}
	for _, f := range files {
		c.imports(f)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				c.caller = ""
				c.node(d, nil) // initializers of variables
				continue
			}
			bodies = append(bodies, fn)
			c.caller = ""
			if fn.Recv == nil {
				c.caller = fn.Name.Name
			}
			c.node(fn.Type, nil)
			if fn.Body != nil {
				c.block(fn.Body.List, nil)
			}
		}
	}
	c.checkCalls(c.ambient(bodies), features)
	slices.Sort(c.problems)
	return c.problems
}

func (c *dispatchChecker) report(n ast.Node, format string, args ...any) {
	c.problems = append(c.problems, c.fset.Position(n.Pos()).String()+": "+fmt.Sprintf(format, args...))
}

// imports finds the names of packages asm and cpu in a file.
func (c *dispatchChecker) imports(f *ast.File) {
	c.asm, c.cpu = "", ""
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil || p != asmPath && p != cpuPath {
			continue
		}
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name == "." {
			c.report(spec, "dot import of %s hides its calls", p)
		}
		if p == asmPath {
			c.asm = name
		} else {
			c.cpu = name
		}
	}
}

// block visits statements in turn; an `if` that leaves the block in one case adds
// what the other case says to the facts of the rest.
func (c *dispatchChecker) block(list []ast.Stmt, known facts) {
	for _, s := range list {
		c.node(s, known)
		if s, ok := s.(*ast.IfStmt); ok {
			yes, no := c.condition(s.Cond)
			otherwise, hasElse := s.Else.(*ast.BlockStmt)
			switch {
			case leaves(s.Body.List):
				known = known.and(no)
			case hasElse && leaves(otherwise.List):
				known = known.and(yes)
			}
		}
	}
}

// leaves reports whether the statements after a block are skipped if it runs.
func leaves(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	switch s := list[len(list)-1].(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		return s.Tok == token.BREAK || s.Tok == token.CONTINUE
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		fn, ok := call.Fun.(*ast.Ident)
		return ok && fn.Name == "panic"
	}
	return false
}

// condition returns what is known if the expression is true and if it is false.
func (c *dispatchChecker) condition(e ast.Expr) (yes, no facts) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.condition(e.X)
	case *ast.SelectorExpr:
		if pkg, ok := e.X.(*ast.Ident); ok && c.cpu != "" && pkg.Name == c.cpu && flagFeatures[e.Sel.Name] != nil {
			return facts{e.Sel.Name: true}, facts{e.Sel.Name: false}
		}
	case *ast.UnaryExpr:
		if e.Op == token.NOT {
			yes, no = c.condition(e.X)
			return no, yes
		}
	case *ast.BinaryExpr:
		xYes, xNo := c.condition(e.X)
		yYes, yNo := c.condition(e.Y)
		switch e.Op {
		case token.LAND:
			return xYes.and(yYes), xNo.or(yNo)
		case token.LOR:
			return xYes.or(yYes), xNo.and(yNo)
		}
	}
	return nil, nil
}

// node visits a piece of syntax under the given facts.
func (c *dispatchChecker) node(n ast.Node, known facts) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			c.block(n.List, known)
			return false
		case *ast.IfStmt:
			yes, no := c.condition(n.Cond)
			if n.Init != nil {
				c.node(n.Init, known)
			}
			c.node(n.Cond, known)
			c.block(n.Body.List, known.and(yes))
			if n.Else != nil {
				c.node(n.Else, known.and(no))
			}
			return false
		case *ast.SwitchStmt:
			if n.Tag != nil || n.Init != nil {
				return true
			}
			c.clauses(n, known)
			return false
		case *ast.CaseClause:
			for _, e := range n.List {
				c.node(e, known)
			}
			c.block(n.Body, known)
			return false
		case *ast.FuncLit: // it may run at any time
			caller := c.caller
			c.caller = ""
			c.node(n.Type, nil)
			c.block(n.Body.List, nil)
			c.caller = caller
			return false
		case *ast.BranchStmt:
			if n.Tok == token.GOTO && c.asm != "" {
				c.report(n, "goto in a file with assembly calls")
			}
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				c.declaration(left)
				if s, ok := left.(*ast.SelectorExpr); ok && c.selects(s, c.cpu) {
					c.report(n, "assigns to cpu.%s", s.Sel.Name)
				}
			}
		case *ast.RangeStmt:
			c.declaration(n.Key)
			c.declaration(n.Value)
		case *ast.ValueSpec:
			for _, name := range n.Names {
				c.declaration(name)
			}
		case *ast.Field:
			for _, name := range n.Names {
				c.declaration(name)
			}
		case *ast.CallExpr:
			c.call(n, known)
		case *ast.SelectorExpr:
			if c.selects(n, c.asm) && n.Sel.Name != "Features" && !c.called[n.Sel] {
				c.report(n, "asm.%s is used other than in a direct call", n.Sel.Name)
			}
			c.node(n.X, known)
			return false
		case *ast.Ident:
			if c.declared[n.Name] && !c.called[n] {
				c.escapes[n.Name] = true
			}
		}
		return true
	})
}

// clauses visits a switch without a tag: a clause knows that the conditions
// before it were false.
func (c *dispatchChecker) clauses(s *ast.SwitchStmt, known facts) {
	enteredByFallthrough := false
	for _, clause := range orderOfTrial(s) {
		var here facts
		if len(clause.List) == 1 {
			here, _ = c.condition(clause.List[0])
		}
		if enteredByFallthrough {
			c.report(clause, "fallthrough into a clause hides its condition")
		}
		for _, e := range clause.List {
			c.node(e, known)
		}
		c.block(clause.Body, known.and(here))
		for _, e := range clause.List {
			_, no := c.condition(e)
			known = known.and(no)
		}
		enteredByFallthrough = false
		if len(clause.Body) > 0 {
			b, ok := clause.Body[len(clause.Body)-1].(*ast.BranchStmt)
			enteredByFallthrough = ok && b.Tok == token.FALLTHROUGH
		}
	}
}

// orderOfTrial lists the clauses with the default, wherever it is written, last.
func orderOfTrial(s *ast.SwitchStmt) []*ast.CaseClause {
	var list, last []*ast.CaseClause
	for _, stmt := range s.Body.List {
		clause := stmt.(*ast.CaseClause)
		if clause.List == nil {
			last = append(last, clause)
		} else {
			list = append(list, clause)
		}
	}
	return append(list, last...)
}

// selects reports whether s is pkg.Something.
func (c *dispatchChecker) selects(s *ast.SelectorExpr, pkg string) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && pkg != "" && x.Name == pkg
}

// declaration complains about a variable that hides one of the two packages.
func (c *dispatchChecker) declaration(e ast.Expr) {
	if name, ok := e.(*ast.Ident); ok && name.Name != "_" && (name.Name == c.asm || name.Name == c.cpu) {
		c.report(e, "%s hides the package of that name", name.Name)
	}
}

func (c *dispatchChecker) call(n *ast.CallExpr, known facts) {
	site := callSite{caller: c.caller, facts: known, where: c.fset.Position(n.Pos()).String()}
	switch fn := n.Fun.(type) {
	case *ast.SelectorExpr:
		if c.selects(fn, c.asm) {
			c.called[fn.Sel] = true
			site.callee = fn.Sel.Name
			c.asmCalls = append(c.asmCalls, site)
		}
	case *ast.Ident:
		if c.declared[fn.Name] {
			c.called[fn] = true
			site.callee = fn.Name
			c.calls = append(c.calls, site)
		}
	}
}

// ambient returns for each function of the package the facts that hold at all
// its calls. Nothing is known about exported functions and function values.
func (c *dispatchChecker) ambient(bodies []*ast.FuncDecl) map[string]facts {
	open := map[string]bool{"": true}
	sites := map[string][]callSite{}
	for _, s := range c.calls {
		sites[s.callee] = append(sites[s.callee], s)
	}
	for _, fn := range bodies {
		name := fn.Name.Name
		if fn.Recv != nil {
			continue
		}
		if fn.Name.IsExported() || name == "init" || c.escapes[name] || len(sites[name]) == 0 {
			open[name] = true
		}
	}
	// Facts spread from callers to callees until nothing changes. A function without
	// an entry has not been reached yet.
	known := map[string]facts{}
	for name := range open {
		known[name] = facts{}
	}
	for changed := true; changed; {
		changed = false
		for callee, list := range sites {
			if open[callee] {
				continue
			}
			var common facts
			for _, s := range list {
				callers, reached := known[s.caller]
				if !reached {
					continue
				}
				if here := callers.and(s.facts); common == nil {
					common = here
				} else {
					common = common.or(here)
				}
			}
			if old, reached := known[callee]; common != nil && (!reached || !maps.Equal(old, common)) {
				known[callee] = common
				changed = true
			}
		}
	}
	return known
}

// checkCalls compares each call of an assembly function with the table.
func (c *dispatchChecker) checkCalls(ambient map[string]facts, features map[string][]string) {
	count := map[string]int{}
	for _, s := range c.asmCalls {
		count[s.callee]++
		complain := func(format string, args ...any) {
			c.problems = append(c.problems, s.where+": asm."+s.callee+" "+fmt.Sprintf(format, args...))
		}
		needs, ok := features[s.callee]
		if !ok {
			complain("is not in asm.Features")
			continue
		}
		known := ambient[s.caller].and(s.facts)
		has := known.features()
		for _, f := range needs {
			if !slices.Contains(has, f) {
				complain("needs %s, which is not certain here", f)
			}
		}
		switch {
		case strings.Contains(s.callee, "AVX512"):
			if !known["HasAVX512"] {
				complain("is outside the branch of its tier")
			}
		case strings.Contains(s.callee, "AVX2"):
			if !known["HasAVX2"] || known["HasAVX512"] {
				complain("is outside the branch of its tier")
			}
		default:
			complain("does not name its tier")
		}
	}
	for name := range features {
		if count[name] != 1 {
			c.problems = append(c.problems, fmt.Sprintf("asm.%s is called from %d places, want 1", name, count[name]))
		}
	}
}
