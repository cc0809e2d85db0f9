"""Right arguments of tools whose schemas do not say them, by server and tool."""

from __future__ import annotations

from typing import Any

BOOK = {"path": "a.xlsx", "sheet": "Data"}
TABLE = {**BOOK, "range": "A1:B3"}
# A picture of one point.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

RIGHT: dict[str, dict[str, dict[str, Any]]] = {
    # The tools are called in the order of the list: `create_sheet` and `write_range` make what the later ones use.
    "excel-mcp-server": {
        "export_csv": {"path": "a.xlsx", "sheet": "Five", "csv_path": "b.csv"},
        "describe_sheet": {"path": "a.xlsx", "sheet": "Sheet1"},
        "create_sheet": {"path": "a.xlsx", "new_name": "Data"},
        "rename_sheet": {"path": "a.xlsx", "sheet": "Sheet1", "new_name": "Three"},
        "copy_sheet": {"path": "a.xlsx", "sheet": "Three", "new_name": "Four"},
        "delete_sheet": {"path": "a.xlsx", "sheet": "Three"},
        "insert_rows_or_columns": {**BOOK, "axis": "rows", "start": 9},
        "delete_rows_or_columns": {**BOOK, "axis": "rows", "start": 9},
        "write_range": {**BOOK, "at": "A1", "rows": [["name", "size"], ["x", 1], ["y", "=B2*2"]]},
        "clear_range": {**BOOK, "range": "F1:G2"},
        "sort_range": {"path": "a.xlsx", "sheet": "Five", "range": "A1:B3", "sort_by": [{"column": "A", "order": "descending"}]},
        "trace_formula": {**BOOK, "range": "B3", "direction": "precedents"},
        "goal_seek": {**BOOK, "cell": "B3", "target": 6, "changing_cell": "B2"},
        "add_conditional_format": {**TABLE, "rule": {"type": "color_scale", "colors": ["FF0000", "00FF00"]}},
        "add_data_validation": {**BOOK, "range": "C1", "rule": {"type": "list", "options": ["a", "b"]}},
        "set_table": {**TABLE, "name": "Sizes"},
        "create_chart": {**BOOK, "chart_type": "bar", "at": "D1", "source": "A1:B3", "name": "Chart"},
        "delete_chart": {**BOOK, "name": "Chart"},
        "add_sparklines": {**BOOK, "range": "C2", "source": "B2:B3"},
        "delete_sparklines": {**BOOK, "range": "C2"},
        "create_pivot_table": {
            **BOOK, "at": "H1", "source": "A1:B3", "row_fields": ["name"], "value_fields": [{"field": "size"}], "name": "Pivot"
        },
        "add_slicer": {**BOOK, "target": {"sheet": "Data", "name": "Sizes"}, "field": "name", "at": "L1", "name": "Slicer"},
        "delete_slicer": {**BOOK, "name": "Slicer"},
        "delete_pivot_table": {**BOOK, "name": "Pivot"},
        "set_note": {**BOOK, "cell": "A2", "text": "a note"},
        "delete_note": {**BOOK, "cell": "A2"},
        "insert_image": {**BOOK, "image_path": "a.png", "at": "P1", "name": "Point"},
        "delete_image": {**BOOK, "name": "Point"},
    },
    "office-word-mcp-server": {
        "add_picture": {"filename": "a.docx", "image_path": "a.png"},
        "format_text": {"filename": "a.docx", "paragraph_index": 0, "start_pos": 0, "end_pos": 2, "bold": True},
        "merge_table_cells": {"filename": "a.docx", "table_index": 0, "start_row": 0, "start_col": 0, "end_row": 0, "end_col": 1},
        "delete_footnote_from_document": {"filename": "a.docx", "footnote_id": 2},
        "delete_footnote_robust": {"filename": "a.docx", "footnote_id": 3},
    },
    "mcp-yahoo-finance": {
        "get_performance_analysis": {"symbols": ["ABC"], "start_date": "2026-01-01", "end_date": "2026-02-01"},
        "get_stock_price_by_date": {"symbol": "ABC", "date": "2026-01-02"},
        "get_stock_price_date_range": {"symbol": "ABC", "start_date": "2026-01-01", "end_date": "2026-02-01"},
        "get_option_chain": {"symbol": "ABC", "expiration_date": "2026-02-01"},
        "get_option_summary": {"symbol": "ABC", "expiration_date": "2026-02-01"},
    },
}
